"""Regular expressions: RegexFullMatch, StaticRegexFullMatch.

The expressions are those of RE2, whose library matches them in linear time (`google-re2`, the extra `strings`).
Without the library, Python matches those that are so simple that they mean the same, and take no long time.

Source: TensorFlow core/ops/string_ops.cc, core/kernels/regex_full_match_op.cc.
"""

import functools
import re
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from opkernel.device.budget import current_budget
from opkernel.device.work_clock import check_seconds, in_time, string_work
from opkernel.errors import InvalidArgumentError
from opkernel.libraries import library, library_or_none
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.opdef.common_shapes.shape_rule import shape_rule
from opkernel.ops.input_checks import require_scalar
from opkernel.ops.registration import register_kernel

__all__ = [
    "Pattern",
    "compiled_pattern",
    "full_match",
    "is_short_ascii",
    "quick_rewriting",
    "quick_substitution",
]

FullMatch = Callable[[bytes], bool]
Rewrite = Callable[[bytes], bytes]

_CLASS = rb"\[\^?(?:[A-Za-z0-9]-[A-Za-z0-9]|[A-Za-z0-9 _.,:;/!?=@%+*(){}<>\"'$#]|\\[^A-Za-z0-9\x80-\xff])+\]"
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
    "RegexFullMatch",
    inputs=["input: string", "pattern: string"],
    outputs=["output: bool"],
    shape_fn=shape_rule("_, [] -> in0"),
    traits="extra=strings",
    doc="Whether all of each string matches a regular expression of RE2.",
)

STATIC_REGEX_FULL_MATCH = register_op(
    "StaticRegexFullMatch",
    inputs=["input: string"],
    outputs=["output: bool"],
    attrs=["pattern: string"],
    shape_fn=unchanged_shape,
    traits="extra=strings",
    doc="RegexFullMatch with an expression that is known when the graph is made.",
)


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


def quick_rewriting(pattern: bytes, parts: list[bytes | int]) -> Rewrite | None:
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


def quick_substitution(pattern: bytes, literal: bytes) -> Rewrite | None:
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
        one = b"(?:" + one[:-1] + rb"\x80-\xff]|" + _BEYOND_ASCII + b")"
    return one + quantifier


def _matched(tensor: Any, matches: FullMatch) -> Any:
    found = np.fromiter(map(matches, in_time(tensor.flat, string_work)), np.bool_, tensor.size)
    return found.reshape(tensor.shape)


@register_kernel(REGEX_FULL_MATCH)
def regex_full_match(tensor: Any, pattern: Any) -> Any:
    require_scalar(pattern, "Pattern must be scalar, but received {}")
    return _matched(tensor, full_match(pattern.item()))


@register_kernel(STATIC_REGEX_FULL_MATCH, factory=True)
def static_regex_full_match(*, pattern: str) -> Callable[[Any], Any]:
    matches = full_match(pattern.encode("utf-8", "surrogateescape"))
    return lambda tensor: _matched(tensor, matches)
