"""Replacing what a regular expression matches: RegexReplace, StaticRegexReplace.

Source: TensorFlow core/ops/string_ops.cc, core/kernels/regex_replace_op.cc, static_regex_replace_op.cc; RE2's
GlobalReplace and Rewrite.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from opkernel.device.budget import current_budget
from opkernel.device.string_tensors import gather_bytes, map_strings
from opkernel.device.work_clock import in_time, string_work
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.opdef.common_shapes.shape_rule import shape_rule
from opkernel.ops.input_checks import require_scalar
from opkernel.ops.registration import register_kernel
from opkernel.ops.strings.regex import (
    Pattern,
    check_speed,
    compiled_pattern,
    is_short_ascii,
    quick_rewriting,
    quick_substitution,
)

Replace = Callable[[bytes], bytes]


REGEX_REPLACE = register_op(
    "RegexReplace",
    inputs=["input: string", "pattern: string", "rewrite: string"],
    outputs=["output: string"],
    attrs=["replace_global: bool = true"],
    shape_fn=shape_rule("_, [], [] -> in0"),
    traits="extra=strings",
    doc="Each string with its matches of `pattern` replaced: all, or the first. `\\\\1` is the text of group 1.",
)

STATIC_REGEX_REPLACE = register_op(
    "StaticRegexReplace",
    inputs=["input: string"],
    outputs=["output: string"],
    attrs=["pattern: string", "rewrite: string", "replace_global: bool = true"],
    shape_fn=unchanged_shape,
    traits="extra=strings",
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
