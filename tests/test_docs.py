"""The code in the documentation runs, block after block, page by page."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    "README.md",
    "docs/tour.md",
    "docs/adding_an_op.md",
    "docs/kernels.md",
    "docs/origins.md",
    "docs/security.md",
    "docs/functions.md",
    "docs/gradients.md",
    "docs/graph_editing.md",
    "docs/freezing.md",
    "docs/training.md",
    "docs/checkpoints.md",
    "docs/optimization.md",
    "docs/providers.md",
    "docs/saved_models.md",
    "docs/serving.md",
    "docs/sessions.md",
    "docs/devices.md",
    "docs/tracing.md",
    "docs/drawing.md",
    "docs/predict.md",
    "docs/clusters.md",
    "docs/collectives.md",
]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)]+)\)")


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_the_page_runs(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = BLOCK.findall(text)
    assert blocks, "the page has no code"
    # A process of its own: the pages register ops.
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_readme_leads_to_every_page() -> None:
    links = {link.split("#")[0] for link in LINK.findall((ROOT / "README.md").read_text())}
    assert {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")} <= links
    assert all((ROOT / link).exists() for link in links if "://" not in link)


def test_the_page_on_kernels_lists_what_contexts_and_constructions_have() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "generate_context_docs.py"), "--check"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "`allocate_output(which: int | str" in (ROOT / "docs" / "kernels.md").read_text("utf-8")


SECTION_LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)")


@pytest.mark.parametrize("page", PAGES)
def test_links_to_sections_lead_to_one(page: str) -> None:
    folder = (ROOT / page).parent
    for file, anchor in SECTION_LINK.findall((ROOT / page).read_text(encoding="utf-8")):
        target = folder / file if file else ROOT / page
        headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
        anchors = [re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in headings]
        assert anchor in anchors, f"{file}#{anchor}"
