"""Each function for text of others: whatever it is given, the document says that and nothing else."""

import ast
import json
import re
import unicodedata
import zipfile
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hostile_names import HOSTILE_TEXT

from opkernel.cli.output import echo
from opkernel.cli.results import write_arrays
from opkernel.errors import InvalidArgumentError
from opkernel.escaping import (
    archive_name,
    docstring,
    html_text,
    json_text,
    markdown_cell,
    markdown_code,
    sarif_message,
    terminal_text,
)
from opkernel.runtime.plan.text import Identifiers

any_text = st.one_of(st.sampled_from(HOSTILE_TEXT[:-1]), st.text(max_size=40))

STEERING = {"Cc", "Cf", "Zl", "Zp", "Cs"}
"""Unicode's categories of control characters, marks of direction, line ends, lone surrogates."""


def is_harmless(text: str, keep: str = "\n") -> bool:
    return all(c in keep or unicodedata.category(c) not in STEERING for c in text)


@given(any_text)
def test_terminals(text: str) -> None:
    found = terminal_text(text)
    assert is_harmless(found)
    assert is_harmless(terminal_text(text, keep=""), keep="")
    if "\\" not in text:
        assert ast.literal_eval(f'"""{found}"""' if '"' not in text else repr(text)) == text
    assert terminal_text(found) == found
    assert is_harmless(str(InvalidArgumentError(text)), keep="\n\t")
    assert InvalidArgumentError(text).message == text


@given(any_text)
def test_docstrings(text: str) -> None:
    written = docstring(text)
    assert ast.literal_eval(written) == re.sub("\r\n?", "\n", text)
    assert len(ast.parse(written).body) == 1
    assert is_harmless(written)


@given(any_text)
def test_json(text: str) -> None:
    written = json_text({text: [text]}, indent=2)
    assert json.loads(written) == {text: [text]}
    assert written.replace("\n", "").isascii()
    assert is_harmless(written)


@given(any_text)
def test_markdown(text: str) -> None:
    code, cell = markdown_code(text), markdown_cell(text)
    for written in (code, cell):
        assert "\n" not in written
        assert not re.search(r"(?<!\\)\|", written.replace("\\\\", "")), "one cell"
        assert is_harmless(written)
        assert "<" not in re.sub("^<code>|</code>$", "", written)
    inner = re.fullmatch(r"`([^`]*)`|<code>(.*)</code>", code, re.DOTALL)
    assert inner is not None
    assert inner[1] == text or unescape(inner[2] or "") == terminal_text(text, keep="")


@given(any_text)
def test_html(text: str) -> None:
    written = html_text(text)
    assert not {*"<>\"'"} & {*written}
    assert is_harmless(written, keep="")
    assert unescape(written) == terminal_text(text, keep="")
    assert unescape(html_text(text, keep="\n")) == terminal_text(text)


@given(any_text)
def test_sarif(text: str) -> None:
    assert not re.search(r"(?<!\\)\[[^\]]*\]\(", sarif_message(text))
    assert sarif_message("[ DT_FLOAT ] was [ DT_HALF ]") == "[ DT_FLOAT ] was [ DT_HALF ]"


@given(st.lists(any_text, max_size=8))
def test_identifiers(texts: list[str]) -> None:
    names = Identifiers(["np", "plan"])
    found = [names.unique(text) for text in texts]
    assert all(name.isidentifier() and name.isascii() and len(name) < 80 for name in found)
    assert len({*found}) == len(found)
    program = "\n".join(f"{name} = {text!r}" for name, text in zip(found, texts, strict=True))
    namespace: dict[str, object] = {"np": np}
    exec(program, namespace)
    assert [namespace[name] for name in found] == texts
    assert namespace["np"] is np


def test_archives(tmp_path: Path) -> None:
    """Names of options of np.savez, equal but for their ends, too long for zip."""
    names = ["file", "allow_pickle", "self", "a/b:0", "x" * 65_536, "x" * 65_537, "é" * 40_000]
    arrays = {archive_name(name): np.float32(i) * np.ones(2) for i, name in enumerate(names)}
    write_arrays(tmp_path / "a.npz", arrays)
    with np.load(tmp_path / "a.npz") as stored:
        assert [stored[archive_name(name)][0] for name in names] == [*range(len(names))]
    assert [archive_name(name) == name for name in names] == [True] * 4 + [False] * 3
    assert zipfile.ZipFile(tmp_path / "a.npz").testzip() is None


@pytest.mark.parametrize("text", HOSTILE_TEXT)
def test_what_is_printed(text: str, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    echo(text, " ", text)
    printed = capsysbinary.readouterr().out.decode("utf-8")
    assert is_harmless(printed)
