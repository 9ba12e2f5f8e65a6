"""The page in a browser: searching, opening and switching to dark work, without an error."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from opkernel import load_graph
from opkernel.drawing import html_page

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.pb"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SCRIPT = """
window.addEventListener("error", (event) => document.documentElement.dataset.failed = event.message);
const box = document.getElementById("search");
box.value = "maxpool";
box.dispatchEvent(new Event("input"));
document.querySelector("#found button").click();
document.getElementById("theme").click();
document.getElementById("fit").click();
"""


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium")
def test_a_page_is_searched(tmp_path: Path) -> None:
    page = html_page(load_graph(DIGITS), "digits")
    file = tmp_path / "page.html"
    file.write_text(page.replace("</body>", f"<script>{SCRIPT}</script></body>"), "utf-8")
    done = subprocess.run(
        [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
         f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=2000", file.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )  # fmt: skip
    dom = done.stdout
    assert "data-failed" not in dom
    assert ">1 found<" in dom
    assert 'class="ok-node ok-plain ok-found"' in dom
    assert 'data-theme="dark"' in dom
    details = dom.partition('id="details">')[2].partition("</pre>")[0]
    assert details.startswith("MaxPool2d\nop: MaxPool\ngives: float32 [?,4,4,32]")
