"""Text in lines of a width."""

import pytest

from opkernel.opdef import word_wrap


@pytest.mark.parametrize(
    ("prefix", "text", "width", "lines"),
    [
        ("", "aaa bbb", 7, ["aaa bbb"]),
        ("", "aaa bbb", 6, ["aaa", "bbb"]),
        ("a: ", "one two three", 10, ["a: one two", "   three"]),
        ("", "longer than that", 4, ["longer", "than", "that"]),
        ("", "two   blanks  ", 4, ["two", "blanks"]),
        ("", "line\nend stays", 8, ["line\nend", "stays"]),
        ("prefix ", "", 3, ["prefix "]),
        ("prefix ", "a b c", 3, ["prefix a b", "       c"]),
        ("", " ab", 2, ["", "ab"]),
    ],
)
def test_words_stay_whole(prefix: str, text: str, width: int, lines: list[str]) -> None:
    assert word_wrap(prefix, text, width) == "\n".join(lines)
