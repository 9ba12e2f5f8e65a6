"""Regular expressions: RegexFullMatch, RegexReplace, and their Static forms.

The expressions are those of RE2, whose library matches them in linear time (`google-re2`, the extra `strings`).
Without the library, Python matches those that are so simple that they mean the same, and take no long time.

Source: TensorFlow core/ops/string_ops.cc, core/kernels/regex_full_match_op.cc, regex_replace_op.cc,
static_regex_replace_op.cc; RE2's GlobalReplace and Rewrite.
"""

import functools
import re
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, Protocol

import numpy as np

from opkernel.device.budget import current_budget
from opkernel.device.string_tensors import gather_bytes, map_strings
from opkernel.device.work_clock import check_seconds, in_time, string_work
from opkernel.errors import InvalidArgumentError
from opkernel.libraries import library, library_or_none
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.opdef.common_shapes.rules import shape_rule
from opkernel.ops.input_checks import require_scalar
from opkernel.ops.registration import register_kernel

FullMatch = Callable[[bytes], bool]
Replace = Callable[[bytes], bytes]

_ITEM = (
    rb"(?:[A-Za-z0-9 _.,:;/!?=@%+*(){}<>\"'$#`^]|&(?!&)|\|(?!\|)|~(?!~)|\\[^A-Za-z0-9\x80-\xff])"
)
"""A character of a class. Python warns of two `&`, `|` or `~` side by side, which may get a meaning."""
_CLASS = rb"\[(?:\^|(?!\^))-?(?:" + _ITEM + b"(?:-" + _ITEM + rb")?)+-?\]"
_TOKEN = re.compile(
    rb"(?:[A-Za-z0-9 _/:,;<>=!@#%&~\"'`-]|\\[^A-Za-z0-9\x80-\xff]|\\[dw]|\.|" + _CLASS + rb")[*+?]?"
)
_SIMPLE = re.compile(rb"\^?(?:" + _TOKEN.pattern + rb")*\$?")
_GROUPED = re.compile(rb"\^?(?:" + _TOKEN.pattern + rb"|[()|])*\$?")
"""The same with groups that have no quantifier, and alternatives."""
_BEYOND_ASCII = (
    rb"[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xef][\x80-\xbf]{2}"
    rb"|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}"
)
"""The other characters of UTF-8; bytes that are none match nothing."""
_QUANTIFIER = re.compile(rb"(?<!\\)[*+?]")
_MAX_QUANTIFIERS = 3
"""The time that Python may take is a power of the length, with this exponent."""

_QUICK_QUANTIFIERS, _QUICK_ALTERNATIVES, _SHORT = 2, 4, 128
"""What Python matches though there is RE2: its time stays in bounds."""

_EDGE = re.compile(rb"\^|.*(?<!\\)\$\Z", re.DOTALL)


REGEX_FULL_MATCH = register_op(
    "RegexFullMatch(input: string, pattern: string) -> output: bool",
    shape_fn=shape_rule("_, [] -> in0"),
    traits="extra=strings extra_when=inputs",
    doc="Whether all of each string matches a regular expression of RE2.",
)

STATIC_REGEX_FULL_MATCH = register_op(
    "StaticRegexFullMatch(input: string) -> output: bool",
    attrs=["pattern: string"],
    shape_fn=unchanged_shape,
    traits="extra=strings extra_when=attrs",
    doc="RegexFullMatch with an expression that is known when the graph is made.",
)


_AT_ONCE = 1 << 12
"""So many strings are compared with each other before they are matched."""
_LONG = 1 << 19
"""Searches in longer strings are tried on a part first."""


class Pattern(Protocol):
    """What a compiled expression can do, be it of RE2 or of Python."""

    @property
    def groups(self) -> int: ...

    def fullmatch(self, text: bytes) -> Any: ...

    def search(self, text: bytes, at: int = 0) -> Any: ...

    def sub(self, repl: bytes, text: bytes) -> bytes: ...

    def finditer(self, text: bytes) -> Iterator[Any]: ...


@functools.lru_cache(256)
def compiled_pattern(pattern: bytes) -> Pattern:
    """An expression of RE2 on bytes of UTF-8.

    Raises:
        InvalidArgumentError: the pattern is wrong.
        UnimplementedError: the pattern needs the library `google-re2`, which is not installed.
    """
    re2 = library_or_none("re2")
    if re2 is None:
        return _simple_pattern(pattern)
    options = re2.Options()
    options.log_errors = False
    options.encoding = re2.Options.Encoding.UTF8
    try:
        compiled: Pattern = re2.compile(pattern, options)
    except re2.error as error:
        shown = pattern.decode(errors="backslashreplace")
        reason = error.args[0]
        text = reason.decode(errors="backslashreplace") if isinstance(reason, bytes) else reason
        raise InvalidArgumentError(f"Invalid pattern: {shown}, error: {text}") from None
    return compiled


def check_speed(find: Callable[[bytes], Any], text: bytes) -> None:
    """Raise DeadlineExceededError where a search in a long string takes too long, as those in its beginning tell.

    The library takes time that grows with the string alone, but a million times more for some patterns than for others.
    """
    budget = current_budget()
    if len(text) <= _LONG or budget is None or budget.deadline is None:
        return
    size = _LONG >> 3
    while size << 3 <= len(text):
        began = time.process_time()
        find(text[:size])
        taken = time.process_time() - began
        check_seconds(taken * len(text) / size, "matching a string")
        size <<= 3


def full_match(pattern: bytes) -> FullMatch:
    """The function that tells whether all of a string matches; errors as `compiled_pattern`."""
    fullmatch = compiled_pattern(pattern).fullmatch

    def match(text: bytes) -> Any:
        check_speed(fullmatch, text)
        return fullmatch(text)

    if not _is_quick(pattern):
        return lambda text: match(text) is not None
    # Python is faster at short strings, and means the same.
    quick = _of_ascii(pattern).fullmatch
    return lambda text: (quick if is_short_ascii(text) else match)(text) is not None


def _is_quick(pattern: bytes) -> bool:
    return (
        _GROUPED.fullmatch(pattern) is not None
        and len(_QUANTIFIER.findall(pattern)) <= _QUICK_QUANTIFIERS
        and pattern.count(b"|") <= _QUICK_ALTERNATIVES
    )


def quick_rewriting(pattern: bytes, parts: list[bytes | int]) -> Replace | None:
    """The function that replaces all matches in a short string of ASCII by texts and groups, as RE2 does.

    None where Python would step past empty matches in another way.
    """
    tokens = _TOKEN.findall(pattern)
    is_never_empty = any(token[-1:] not in b"*?" or token[:-1] == b"\\" for token in tokens)
    if b"|" in pattern or _EDGE.match(pattern) or not (_is_quick(pattern) and is_never_empty):
        return None
    template = b"".join(
        rb"\g<%d>" % part if isinstance(part, int) else part.replace(b"\\", b"\\\\")
        for part in parts
    )
    substitute = _of_ascii(pattern).sub
    return lambda text: substitute(template, text)


def is_short_ascii(text: bytes) -> bool:
    """Whether functions of Python take a string in bounded time."""
    return len(text) <= _SHORT and text.isascii()


def quick_substitution(pattern: bytes, literal: bytes) -> Replace | None:
    """The function that replaces all matches by a text, where Python does so quickly and as RE2."""
    if not _is_simple(pattern, 1) or _EDGE.match(pattern):
        return None
    tokens = _TOKEN.findall(pattern)
    is_linear = not _QUANTIFIER.search(pattern) or (len(tokens) == 1 and pattern[-1:] == b"+")
    if not (is_linear and tokens):
        return None
    template = literal.replace(b"\\", b"\\\\")
    of_ascii, of_all = _of_ascii(pattern).sub, _simple_pattern(pattern).sub
    return lambda text: (of_ascii if text.isascii() else of_all)(template, text)


def _is_simple(pattern: bytes, quantifiers: int) -> bool:
    return bool(_SIMPLE.fullmatch(pattern)) and len(_QUANTIFIER.findall(pattern)) <= quantifiers


def _simple_pattern(pattern: bytes) -> Pattern:
    """The expression for Python."""
    shown = pattern.decode(errors="backslashreplace")
    if not _is_simple(pattern, _MAX_QUANTIFIERS):
        library("re2", f"The pattern {shown!r}")
    begin, body, end = _ends(pattern)
    try:
        return re.compile(b"".join((begin, *map(_on_bytes, _TOKEN.findall(body)), end)))
    except re.error as error:
        raise InvalidArgumentError(f"Invalid pattern: {shown}, error: {error}") from error


def _of_ascii(pattern: bytes) -> Pattern:
    """The expression for Python, for strings of ASCII alone, which is faster."""
    return re.compile(b"".join(_ends(pattern)))


def _ends(pattern: bytes) -> tuple[bytes, bytes, bytes]:
    """The expression between its marks of the begin and the end; Python writes the latter in another way."""
    begin, body = (b"^", pattern[1:]) if pattern[:1] == b"^" else (b"", pattern)
    if body.endswith(b"$") and not body.endswith(rb"\$"):
        return begin, body[:-1], rb"\Z"
    return begin, body, b""


def _on_bytes(token: bytes) -> bytes:
    """What means the same to Python, with bytes for characters."""
    one, quantifier = (token[:-1], token[-1:]) if len(token) > 1 else (token, b"")
    if quantifier not in (b"*", b"+", b"?") or (len(one) == 1 and one == b"\\"):
        one, quantifier = token, b""
    if one == b".":
        one = rb"(?:[^\n\x80-\xff]|" + _BEYOND_ASCII + b")"
    elif one.startswith(b"[^"):
        one = rb"(?:[^\x80-\xff" + one[2:] + b"|" + _BEYOND_ASCII + b")"
    return one + quantifier


def _matched(tensor: Any, matches: FullMatch) -> Any:
    flat, found = tensor.reshape(-1), np.empty(tensor.size, np.bool_)
    for at in range(0, flat.size, _AT_ONCE):
        texts = flat[at : at + _AT_ONCE].tolist()
        found[at : at + _AT_ONCE] = np.fromiter(_verdicts(texts, matches), np.bool_, len(texts))
    return found.reshape(tensor.shape)


def _verdicts(texts: list[bytes], matches: FullMatch) -> Iterator[bool]:
    """Whether each string matches; of strings that come often, one is looked at."""
    different = set(texts)
    if 2 * len(different) > len(texts):
        return map(matches, in_time(texts, string_work))
    verdict_of = {text: matches(text) for text in in_time(different, string_work)}
    return map(verdict_of.__getitem__, texts)


@register_kernel(REGEX_FULL_MATCH)
def regex_full_match(tensor: Any, pattern: Any) -> Any:
    require_scalar(pattern, "Pattern must be scalar, but received {}")
    return _matched(tensor, full_match(pattern.item()))


@register_kernel(STATIC_REGEX_FULL_MATCH, factory=True)
def static_regex_full_match(*, pattern: str) -> Callable[[Any], Any]:
    matches = full_match(pattern.encode("utf-8", "surrogateescape"))
    return lambda tensor: _matched(tensor, matches)


REGEX_REPLACE = register_op(
    "RegexReplace(input: string, pattern: string, rewrite: string) -> output: string",
    attrs=["replace_global: bool = true"],
    shape_fn=shape_rule("_, [], [] -> in0"),
    traits="extra=strings extra_when=inputs",
    doc="Each string with its matches of `pattern` replaced: all, or the first. `\\\\1` is the text of group 1.",
)

STATIC_REGEX_REPLACE = register_op(
    "StaticRegexReplace(input: string) -> output: string",
    attrs=["pattern: string", "rewrite: string", "replace_global: bool = true"],
    shape_fn=unchanged_shape,
    traits="extra=strings extra_when=attrs",
    doc="RegexReplace with pattern and rewrite that are known when the graph is made.",
)


@register_kernel(REGEX_REPLACE)
def regex_replace(tensor: Any, pattern: Any, rewrite: Any, *, replace_global: bool) -> Any:
    for name, value in (("Pattern", pattern), ("Rewrite", rewrite)):
        require_scalar(value, f"{name} must be scalar, but received {{}}")
    return map_strings(replacement(pattern.item(), rewrite.item(), replace_global), tensor)


@register_kernel(STATIC_REGEX_REPLACE, factory=True)
def static_regex_replace(
    *, pattern: str, rewrite: str, replace_global: bool
) -> Callable[[Any], Any]:
    parts = [text.encode("utf-8", "surrogateescape") for text in (pattern, rewrite)]
    replace = replacement(parts[0], parts[1], replace_global)
    return lambda tensor: map_strings(replace, tensor)


def replacement(pattern: bytes, rewrite: bytes, replace_global: bool) -> Replace:
    """The function that replaces the matches in a string.

    Raises:
        InvalidArgumentError: the pattern is wrong.
        UnimplementedError: the pattern needs the library `google-re2`, which is not installed.
    """
    compiled = compiled_pattern(pattern)
    parts, is_valid = _parse_rewrite(rewrite)
    asked = [int(digit) for digit in _GROUP.findall(rewrite)]
    if max(asked, default=0) > compiled.groups or not (is_valid or replace_global):
        return bytes  # RE2 refuses the rewrite: nothing is replaced
    pieces = _replacing(compiled, parts, replace_global)
    replace = _in_bounds(compiled.search, pieces, len(rewrite))
    if not replace_global:
        return replace
    if all(isinstance(part, bytes) for part in parts):
        literal = b"".join(part for part in parts if isinstance(part, bytes))
        quick = quick_substitution(pattern, literal)
        if quick is not None:
            return _quick_if(lambda text: not _may_be_much(text, len(literal)), quick, replace)
    quick = quick_rewriting(pattern, parts)
    return replace if quick is None else _quick_if(is_short_ascii, quick, replace)


_GROUP = re.compile(rb"\\([0-9])")
_MUCH = 1 << 20
"""A string that may become so long is made in pieces where a budget holds."""


def _may_be_much(text: bytes, rewrite: int) -> bool:
    """Whether a string may take long, or become long, where each match becomes so many bytes or groups."""
    return (len(text) + 1) * (rewrite + 1) > _MUCH and current_budget() is not None


def _quick_if(applies: Callable[[bytes], bool], quick: Replace, replace: Replace) -> Replace:
    return lambda text: (quick if applies(text) else replace)(text)


def _in_bounds(
    search: Callable[[bytes], Any], pieces: Callable[[bytes], Iterable[bytes]], rewrite: int
) -> Replace:
    """The function that puts pieces together, within the budget where these may be many or long."""

    def replace(text: bytes) -> bytes:
        if not _may_be_much(text, rewrite):
            return b"".join(pieces(text))
        check_speed(search, text)
        made = in_time(pieces(text), string_work(text), "replacing matches")
        return gather_bytes(made, "a string with replacements")

    return replace


def _parse_rewrite(rewrite: bytes) -> tuple[list[bytes | int], bool]:
    """The texts and the numbers of groups; False if a bad escape ends it."""
    parts: list[bytes | int] = []
    at = 0
    while at < len(rewrite):
        stop = rewrite.find(b"\\", at)
        if stop < 0:
            return [*parts, rewrite[at:]], True
        parts.append(rewrite[at:stop])
        escaped = rewrite[stop + 1 : stop + 2]
        if escaped.isdigit():
            parts.append(int(escaped))
        elif escaped == b"\\":
            parts.append(escaped)
        else:
            return parts, False
        at = stop + 2
    return parts, True


def _replacing(
    compiled: Pattern, parts: list[bytes | int], replace_global: bool
) -> Callable[[bytes], Iterable[bytes]]:
    """The function that gives what a string becomes, piece by piece."""
    search, finditer = compiled.search, compiled.finditer

    def texts_of(match: Any) -> Iterable[bytes]:
        """The texts for one match; groups that took no part are empty."""
        return (part if isinstance(part, bytes) else match.group(part) or b"" for part in parts)

    def with_first(text: bytes) -> Iterable[bytes]:
        match = search(text)
        if match is None:
            return (text,)
        begin, end = match.span()
        return chain((text[:begin],), texts_of(match), (text[end:],))

    def with_all(text: bytes) -> Iterator[bytes]:
        at, last_end = 0, -1
        match = None
        for match in finditer(text):
            begin, end = match.span()
            if begin == end:  # the library steps past empty matches in another way
                break
            yield text[at:begin]
            yield from texts_of(match)
            at = last_end = end
        else:
            match = None
        while match is not None:
            begin, end = match.span()
            yield text[at:begin]
            at = end
            if begin == end == last_end:  # an empty match right after a match is none
                at += _character_length(text, end)
                yield text[end:at]
            else:
                yield from texts_of(match)
                last_end = end
            match = search(text, at) if at <= len(text) else None
        yield text[at:]

    return with_all if replace_global else with_first


def _character_length(text: bytes, at: int) -> int:
    """The bytes of the character at a place: that of UTF-8, or 1 where there is none."""
    if text[at : at + 1] < b"\x80":
        return 1
    for length in (2, 3, 4):
        try:
            text[at : at + length].decode()
        except UnicodeDecodeError:
            continue
        return length
    return 1
