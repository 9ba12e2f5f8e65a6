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
    "docs/functions.md",
    "docs/gradients.md",
    "docs/graph_editing.md",
    "docs/freezing.md",
    "docs/optimization.md",
    "docs/providers.md",
    "docs/sessions.md",
    "docs/devices.md",
    "docs/tracing.md",
]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


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
