"""The page at `/`, in a real browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.serving.browser import Browser, executable
from tools.campaigns.served_models import serving_process

HOSTILE = "<img src=x onerror=alert(1)>"
WAIT = """
    const until = async (is_true) => {
        for (let n = 0; n < 500 && !is_true(); n++) await new Promise(r => setTimeout(r, 20));
        if (!is_true()) throw new Error(document.body.innerText);
    };
    const $ = id => document.getElementById(id);
    const choose = (id, value) => { $(id).value = value; $(id).dispatchEvent(new Event("change")); };
    await until(() => document.readyState === "complete" && $("model") && $("model").value);
"""
SEND = '$("send").click(); await until(() => !$("send").disabled);'


@pytest.fixture
def browser(saved: Path, tmp_path: Path) -> Iterator[Browser]:
    path = executable()
    if path is None:
        pytest.skip("no Chromium is installed")
    models = tmp_path / "models"
    for name in ("half", HOSTILE):
        shutil.copytree(saved, models / name)
    (models / "broken" / "1").mkdir(parents=True)
    (models / "broken" / "1" / "saved_model.pb").write_bytes(b"\x0a\xff")
    port, process = serving_process(models)
    with Browser(path, tmp_path / "browser") as found:
        found.open(f"http://127.0.0.1:{port}/", 340)
        yield found
    process.terminate()
    process.wait()


def test_models_are_shown_and_tried(browser: Browser) -> None:
    shown = browser.run(f"{WAIT} return document.body.innerText")
    assert "pair(n: int64[?], x: float32[?,2]) -> {next: int64[?], sum: float32[?]}" in shown
    assert "saved_model.pb is damaged" in shown
    assert HOSTILE in shown
    names = browser.run(f"{WAIT} return [...$('model').options].map(o => o.value)")
    assert names == [HOSTILE, "half"]
    assert browser.run(f"{WAIT} return document.documentElement.scrollWidth") <= 340
    browser.run(f'{WAIT} choose("model", "half"); choose("signature", "pair")')
    assert browser.run(f"{WAIT} return $('body').value") == '{"inputs": {"n": [0], "x": [[0.0, 0.0]]}}'  # fmt: skip
    answer = (
        'return [$("answer").textContent, $("answer").className, $("took").textContent.slice(0, 4)]'
    )
    assert browser.run(f"{WAIT} {SEND} {answer}") == ['{"outputs": {"next": [1], "sum": [0.0]}}', "", "200,"]  # fmt: skip
    write = (
        """choose("signature", "serving_default"); $("body").value = ' {"instances": [NaN, 1]}';"""
    )
    assert browser.run(f"{WAIT} {write} {SEND} {answer}")[0] == '{"predictions": [NaN, 3.5]}'
    write = """choose("signature", "regress"); $("body").value = '{"examples": [{"x": 1.0}]}';"""
    assert browser.run(f"{WAIT} {write} {SEND} {answer}")[0] == '{"results": [3.5]}'
    write = """$("body").value = '{"examples": [1';"""
    told, kind, status = browser.run(f"{WAIT} {write} {SEND} {answer}")
    assert (kind, status) == ("failed", "400,")
    assert "JSON Parse error" in told
