"""Text protos with strings on lines of their own."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from opkernel.opdef import pb_txt_from_multiline, pb_txt_to_multiline
from opkernel.opdef.text.text_proto import parse_multiline, read_multiline
from opkernel.proto import ApiDefs


def test_a_string_is_written_between_end_markers() -> None:
    assert pb_txt_to_multiline('  f: "a\\nb"\n', ["f"]) == "  f: <<END\na\nb\nEND\n"


def test_only_the_fields_that_are_asked_for_are_written_so() -> None:
    text = 'g: "a\\nb"\nff: "a\\nb"\nf : "a"\n'
    assert pb_txt_to_multiline(text, ["f"]) == text


def test_the_marker_occurs_nowhere_in_the_string() -> None:
    assert pb_txt_to_multiline('f: "xENDy"', ["f"]) == "f: <<END0\nxENDy\nEND0\n"
    text = pb_txt_to_multiline('f: "END\\nEND0"', ["f"])
    assert text == "f: <<END1\nEND\nEND0\nEND1\n"


@pytest.mark.parametrize(
    "line", ['f "7"', "f: 7", 'f: 7"', 'f: "7', 'f: "\\z"', "f: 'x'", "", "f", '"f: 1"']
)
def test_what_is_no_quoted_string_stays(line: str) -> None:
    assert pb_txt_to_multiline(f"{line}\n", ["f"]) == f"{line}\n"


def test_comments_stay_behind_the_string() -> None:
    text = 'f: "bar"  # one\n'
    multiline = pb_txt_to_multiline(text, ["f"])
    assert multiline == "f: <<END\nbar\nEND  # one\n"
    assert pb_txt_from_multiline(multiline) == text


def test_the_word_behind_the_arrows_ends_the_string() -> None:
    assert pb_txt_from_multiline("f: <<X Y\na\nX\nX Y z\nend") == 'f: "a\\nX" z\nend'
    assert pb_txt_from_multiline("f: <<END\nnever ended") == 'f: "never ended"\n'
    assert pb_txt_from_multiline("f: <<END") == "f: <<END"


def test_quotes_and_bytes_are_escaped() -> None:
    assert pb_txt_from_multiline('f: <<END\n"é"\\\nEND\n') == 'f: "\\"\\303\\251\\"\\\\"\n'


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_any_string_comes_back(text: str) -> None:
    quoted = pb_txt_from_multiline(f"f: <<~~~\n{text}\n~~~\n")
    if not any(line.startswith("~~~") for line in text.split("\n")):
        assert pb_txt_from_multiline(pb_txt_to_multiline(quoted, ["f"])) == quoted


@given(st.text())
def test_any_text_is_taken(text: str) -> None:
    pb_txt_from_multiline(pb_txt_to_multiline(text, ["f", ""]))


def test_a_message_is_read() -> None:
    text = 'op {\n  summary: <<END\nSays "a"\nEND\n}\n'
    assert parse_multiline(text, ApiDefs()).op[0].summary == 'Says "a"'


def test_errors_name_line_and_column() -> None:
    with pytest.raises(InvalidArgumentError, match=r"ApiDefs: 2:3 .*no field named \"x\""):
        parse_multiline("op {\n  x: 1\n}", ApiDefs())
    with pytest.raises(InvalidArgumentError):
        parse_multiline("op { attr { default_value { list { func { " * 2000, ApiDefs())


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="missing"):
        read_multiline(tmp_path / "missing.pbtxt")
    with pytest.raises(FailedPreconditionError, match=tmp_path.name):
        read_multiline(tmp_path)
