"""RegexReplace, StaticRegexReplace."""

import importlib.util
from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.ops.strings import regex

CASES: list[tuple[Any, Any, Any, Any, Any]] = [
    ("a*", "x", "baac", "xbxcx", "xbaac"),
    ("", "-", "aéb", "-a-é-b-", "-aéb"),
    ("x*", "-", b"\xff\xffa", b"-\xff-\xff-a-", b"-\xff\xffa"),
    (r"\b", "-", "ab c", "-ab- -c-", "-ab c"),
    ("a", r"\1", "banana", "banana", "banana"),
    ("(a)", r"\1\1", "banana", "baanaanaa", "baanana"),
    ("a", r"\q", "banana", "bnn", "banana"),
    ("(a)(n)?", r"[\2]", "banana", "b[n][n][]", "b[n]ana"),
    ("$", "!", "ab", "ab!", "ab!"),
    ("a*?", "x", "baac", "xbxaxaxcx", "xbaac"),
    ("(?i)A", "x", "aA", "xx", "xA"),
    ("a", r"\\", "a", "\\", "\\"),
    (".", "x", "ÿ", "x", "x"),
    (r"(\w+) (\w+)", r"\2 \1", "one two three four", "two one four three", "two one three four"),
    ("(a)(b*)", r"<\2\0>", "abba", "<bbabb><a>", "<bbabb>a"),
    ("([0-9]+)-(.)", r"\2\\\1", "1-a 22-b", r"a\1 b\22", r"a\1 22-b"),
]
"""Pattern, rewrite, text; TensorFlow's result with all and with the first match replaced."""

KERAS_PUNCTUATION = r"""[!"#$%&()\*\+,-\./:;<=>?@\[\\\]^_`{|}~\']"""
"""What keras.layers.TextVectorization removes by default."""

SIMPLE = [
    ("[^a-z ]*", "", "Hi, thé 1.", "i th ", None),
    ("a*", "x", "baac", "xbxcx", "xbaac"),
    ("[A-Z!.]", "-", "Ab!c.", "-b-c-", "-b!c."),
    (".", "x", "é\nb", "x\nx", "x\nb"),
    ("b+$", "x", "abb\n", "abb\n", "abb\n"),
    (KERAS_PUNCTUATION, "", "It's (a) [b]-c^d|e~f\\g_h: é!", "Its a bcdefgh é", None),
    ("[^a-z,-.]", "", "a-B,é.", "a-,.", "a-,é."),
]


def encoded(*texts: Any) -> list[bytes]:
    return [text.encode() if isinstance(text, str) else text for text in texts]


def replaced(inputs: list[bytes], replace_global: bool) -> Any:
    pattern, rewrite, text = inputs
    (found,) = raw_ops.RegexReplace(
        input=np.array([text], object),
        pattern=pattern,
        rewrite=rewrite,
        replace_global=replace_global,
    )
    return found


@pytest.mark.skipif(importlib.util.find_spec("re2") is None, reason="needs google-re2")
@pytest.mark.parametrize(("pattern", "rewrite", "text", "every", "first"), CASES)
def test_matches_are_replaced_as_re2_does(
    pattern: Any, rewrite: Any, text: Any, every: Any, first: Any
) -> None:
    inputs = encoded(pattern, rewrite, text)
    assert [replaced(inputs, True), replaced(inputs, False)] == encoded(every, first)
    static = raw_ops.StaticRegexReplace(
        input=np.array([inputs[2]], object), pattern=pattern, rewrite=rewrite
    )
    assert static.tolist() == encoded(every)


@pytest.mark.parametrize(("pattern", "rewrite", "text", "every", "first"), SIMPLE)
def test_simple_patterns_need_no_library(
    pattern: Any,
    rewrite: Any,
    text: Any,
    every: Any,
    first: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(regex, "library_or_none", lambda _: None)
    regex.compiled_pattern.cache_clear()
    inputs = encoded(pattern, rewrite, text)
    try:
        assert [replaced(inputs, True)] == encoded(every)
        if first is not None:
            assert [replaced(inputs, False)] == encoded(first)
    finally:
        regex.compiled_pattern.cache_clear()


def test_other_patterns_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(module: str, need: str) -> Any:
        raise UnimplementedError(f"{need} needs {module}")

    monkeypatch.setattr(regex, "library_or_none", lambda _: None)
    monkeypatch.setattr(regex, "library", missing)
    regex.compiled_pattern.cache_clear()
    with pytest.raises(UnimplementedError, match="re2"):
        replaced([rb"(a|b)+", b"", b"a"], True)
    regex.compiled_pattern.cache_clear()


def test_wrong_patterns_and_ranks_are_refused() -> None:
    text = np.array([b"a"], object)
    if importlib.util.find_spec("re2") is not None:
        with pytest.raises(InvalidArgumentError, match=r"Invalid pattern: \("):
            raw_ops.RegexReplace(input=text, pattern="(", rewrite="")
    with pytest.raises(InvalidArgumentError, match=r"scalar|rank 0"):
        raw_ops.RegexReplace(input=text, pattern=text, rewrite="")


PIECES = ["a", "[^a-z ]", "[a-c]", ".", "\\.", "b", "é", "[^é]", "\\$"]
PATTERNS = st.lists(
    st.tuples(st.sampled_from(PIECES), st.sampled_from(["", "+", "*", "?"])), min_size=1, max_size=3
).map(lambda parts: "".join(piece + quantifier for piece, quantifier in parts).encode())
TEXTS = st.lists(st.sampled_from([b"a", b"b", b"Z", b"\n", b".", b"$", "é".encode(), b"\xff"])).map(
    b"".join
)


GROUPED = st.lists(
    st.sampled_from([*PIECES, r"\w+", r"\d", "a*", "(", ")", "|", "^", "$"]), min_size=1, max_size=7
).map(lambda pieces: "".join(pieces).encode())


@pytest.mark.skipif(importlib.util.find_spec("re2") is None, reason="needs google-re2")
@given(GROUPED, TEXTS)
def test_groups_and_alternatives_mean_the_same_to_re2(pattern: bytes, text: bytes) -> None:
    try:
        compiled = regex.compiled_pattern(pattern)
    except InvalidArgumentError:
        reject()
    assert regex.full_match(pattern)(text) == (compiled.fullmatch(text) is not None)
    quick = regex.quick_rewriting(pattern, [b"<", 0, b"\\>"])
    if quick is not None and regex.is_short_ascii(text):
        assert quick(text) == compiled.sub(rb"<\g<0>\\>", text)


@pytest.mark.skipif(importlib.util.find_spec("re2") is None, reason="needs google-re2")
@given(PATTERNS, TEXTS)
def test_what_python_matches_means_the_same_to_re2(pattern: bytes, text: bytes) -> None:
    compiled = regex.compiled_pattern(pattern)
    assert regex.full_match(pattern)(text) == (compiled.fullmatch(text) is not None)
    quick = regex.quick_substitution(pattern, b"\\x")
    if quick is not None:
        assert quick(text) == compiled.sub(b"\\\\x", text)


ITEMS = st.one_of(
    st.sampled_from([chr(code) for code in range(32, 127)]),
    st.sampled_from(["\\" + chr(code) for code in range(32, 127)]),
)
CLASSES = st.lists(st.tuples(ITEMS, st.sampled_from(["", "-"])), min_size=1, max_size=5).map(
    lambda parts: f"[{''.join(map(''.join, parts))}]".encode()
)


@pytest.mark.skipif(importlib.util.find_spec("re2") is None, reason="needs google-re2")
@pytest.mark.filterwarnings("error")
@given(CLASSES, st.text(st.characters(codec="utf-8"), max_size=8))
def test_classes_of_punctuation_mean_the_same_to_re2(pattern: bytes, text: str) -> None:
    try:
        compiled = regex.compiled_pattern(pattern)
    except InvalidArgumentError:
        reject()
    quick = regex.quick_substitution(pattern, b"")
    if quick is not None:
        assert quick(text.encode()) == compiled.sub(b"", text.encode())
