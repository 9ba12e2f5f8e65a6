"""Regular expressions: RegexFullMatch, StaticRegexFullMatch.

The expressions are those of RE2, whose library matches them in linear time (`google-re2`, the extra `strings`).
Without the library, Python matches those that are so simple that they mean the same, and take no long time.

Source: TensorFlow core/ops/string_ops.cc, core/kernels/regex_full_match_op.cc.
"""

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.ops.declared.rules import check_scalars
from opkernel.ops.libraries import library, library_or_none
from opkernel.ops.registration import register_kernel
from opkernel.ops.strings.elements import in_time
from opkernel.types import TensorShape

FullMatch = Callable[[bytes], bool]

_SIMPLE = re.compile(
    rb"\^?(?:(?:[A-Za-z0-9 _/:,;<>=!@#%&~\"'`-]|\\[^A-Za-z0-9\x80-\xff]|\.|\[[A-Za-z0-9_ ]+"
    rb"(?:-[A-Za-z0-9])?\])[*+?]?)*\$?"
)
_QUANTIFIER = re.compile(rb"(?<!\\)[*+?]")
_MAX_QUANTIFIERS = 3
"""The time that Python may take is a power of the length, with this exponent."""


def _full_match_shape(c: InferenceContext) -> None:
    check_scalars(c, 1)
    c.set_output(0, c.input(0))


REGEX_FULL_MATCH = register_op(
    "RegexFullMatch",
    inputs=["input: string", "pattern: string"],
    outputs=["output: bool"],
    shape_fn=_full_match_shape,
    doc="Whether all of each string matches a regular expression of RE2.",
)

STATIC_REGEX_FULL_MATCH = register_op(
    "StaticRegexFullMatch",
    inputs=["input: string"],
    outputs=["output: bool"],
    attrs=["pattern: string"],
    shape_fn=unchanged_shape,
    doc="RegexFullMatch with an expression that is known when the graph is made.",
)


@functools.lru_cache(256)
def full_match(pattern: bytes) -> FullMatch:
    """The function that tells whether all of a string matches.

    Raises:
        InvalidArgumentError: the pattern is wrong.
        UnimplementedError: the pattern needs the library `google-re2`, which is not installed.
    """
    re2 = library_or_none("re2")
    if re2 is None:
        return _simple_match(pattern)
    options = re2.Options()
    options.log_errors = False
    options.encoding = re2.Options.Encoding.UTF8
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        shown = pattern.decode(errors="backslashreplace")
        raise InvalidArgumentError(f"Invalid pattern: {shown}, error: {error}") from error
    return lambda text: compiled.fullmatch(text) is not None


def _simple_match(pattern: bytes) -> FullMatch:
    if not _SIMPLE.fullmatch(pattern) or len(_QUANTIFIER.findall(pattern)) > _MAX_QUANTIFIERS:
        library("re2", f"The pattern {pattern.decode(errors='backslashreplace')!r}")
    body = pattern.removeprefix(b"^")
    if body.endswith(b"$") and not body.endswith(rb"\$"):
        body = body[:-1]
    compiled = re.compile(body.decode("ascii"))

    def matches(text: bytes) -> bool:
        # Bytes that are no UTF-8 match nothing, as in RE2; `.` matches no end of a line.
        try:
            return compiled.fullmatch(text.decode()) is not None
        except UnicodeDecodeError:
            return False

    return matches


def _matched(tensor: Any, matches: FullMatch) -> Any:
    found = np.fromiter(map(matches, in_time(tensor.flat)), np.bool_, tensor.size)
    return found.reshape(tensor.shape)


@register_kernel(REGEX_FULL_MATCH, device="CPU")
def regex_full_match(tensor: Any, pattern: Any) -> Any:
    if pattern.ndim:
        raise InvalidArgumentError(
            f"Pattern must be scalar, but received {TensorShape(pattern.shape)}"
        )
    return _matched(tensor, full_match(pattern.item()))


@register_kernel(STATIC_REGEX_FULL_MATCH, device="CPU", factory=True)
def static_regex_full_match(*, pattern: str) -> Callable[[Any], Any]:
    matches = full_match(pattern.encode("utf-8", "surrogateescape"))
    return lambda tensor: _matched(tensor, matches)
