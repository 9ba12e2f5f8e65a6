"""Each string changed or measured: Substr, StringStrip, StringLower, StringUpper and StringLength.

Source: TensorFlow core/ops/string_ops.cc, core/kernels/substr_op.cc, string_strip_op.cc, string_lower_op.cc,
string_upper_op.cc, string_length_op.cc.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, starmap
from typing import Any

import numpy as np

from opkernel.device.string_buffer import (
    StringBatch,
    counts_in_strings,
    string_batches,
    strings_between,
)
from opkernel.device.string_tensors import map_strings, string_tensor
from opkernel.device.work_clock import in_time, string_work
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import KernelRegistry
from opkernel.opdef import InferenceContext, broadcast_binary_op_shape, register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.ops.input_checks import broadcast_shape, require_equal
from opkernel.ops.registration import INDEX, register_kernel

STRING_LENGTH = register_op(
    "StringLength(input: string) -> output: int32",
    attrs=["unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'"],
    shape_fn=unchanged_shape,
    doc="The length of each string, in bytes or characters.",
)


@register_kernel(STRING_LENGTH)
def string_length(tensor: Any, *, unit: str) -> Any:
    count = _counts_of_bytes if unit == "BYTE" else _counts_of_characters
    counts = [count(batch) for batch in string_batches(tensor)]
    return np.concatenate([np.zeros(0, np.int32), *counts]).astype(np.int32).reshape(tensor.shape)


def _counts_of_bytes(batch: StringBatch) -> Any:
    return batch.lengths


def _counts_of_characters(batch: StringBatch) -> Any:
    """The bytes of each string that begin a character; the text need not be valid."""
    data, splits = batch.joined()
    return counts_in_strings(_begin_characters(data), splits)


def _begin_characters(data: Any) -> Any:
    """Which bytes continue no character."""
    return data & 0xC0 != 0x80


def _register_case(
    name: str, case: str, of_bytes: Callable[[bytes], bytes], of_text: Callable[[str], str]
) -> None:
    op = register_op(
        f"{name}(input: string) -> output: string",
        attrs=["encoding: string = ''"],
        shape_fn=unchanged_shape,
        doc=f"Each string with its letters in {case} case: those of ASCII, or all where `encoding` is utf-8.",
    )

    def convert_utf8(text: bytes) -> bytes:
        """Converted up to the first NUL, where TensorFlow's conversion ends the string."""
        return of_text(text.partition(b"\0")[0].decode("utf-8", "replace")).encode()

    @register_kernel(op, factory=True)
    def convert(*, encoding: str) -> Callable[[Any], Any]:
        if encoding not in ("", "utf-8"):
            raise InvalidArgumentError(
                f"only utf-8 or '' (no encoding) is supported, received {encoding}"
            )
        function = convert_utf8 if encoding else of_bytes
        return lambda tensor: map_strings(function, tensor)


_register_case("StringLower", "lower", bytes.lower, str.lower)
_register_case("StringUpper", "upper", bytes.upper, str.upper)


STRING_STRIP = register_op(
    "StringStrip(input: string) -> output: string",
    shape_fn=unchanged_shape,
    doc="Each string without the blanks at its ends.",
)


@register_kernel(STRING_STRIP)
def string_strip(tensor: Any) -> Any:
    return map_strings(bytes.strip, tensor)


_MAX_BROADCAST_RANK = 2
_OUT_OF_RANGE = "pos out of range for string"
_LONG_TEXT = 256
"""From so many bytes on, NumPy finds the characters of a string faster."""


def substr_shape(c: InferenceContext) -> None:
    """Strings and positions broadcast; positions and lengths have one shape."""
    position, length = c.input(1), c.input(2)
    if c.rank_known(length):
        c.with_rank(position, c.rank(length))
    for i in range(c.rank(position)):
        # Unknown sizes only match unknown ones: the values are compared, not merged.
        if c.dim(position, i).value != c.dim(length, i).value:
            raise InvalidArgumentError(f"pos and len shapes must match: {position} vs. {length}")
    broadcast_binary_op_shape(c)


SUBSTR = register_op(
    "Substr(input: string, pos: T, len: T) -> output: string",
    attrs=["T: {int32, int64}", "unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'"],
    shape_fn=substr_shape,
    doc="`len` bytes or characters of each string, from `pos` on; a negative `pos` counts from the end.",
)


FindCharacters = Callable[[Any, Any, Any, Any], tuple[Any, Any] | None]
"""A function as `characters_in_strings`."""
StringsBetween = Callable[[Any, Any, Any], Iterable[bytes]]
"""A function as `strings_between`."""


def register_substr(
    find_characters: FindCharacters,
    strings: StringsBetween,
    registry: KernelRegistry | None = None,
) -> None:
    """Register the kernel of Substr with functions for strings in a buffer."""

    def parts_of_characters(batch: StringBatch, starts: Any, lengths: Any) -> Iterable[bytes]:
        data, splits = batch.joined()
        found = find_characters(data, splits, starts, lengths)
        if found is None:
            raise InvalidArgumentError(_OUT_OF_RANGE)
        return strings(data, *found)

    def parts_of_bytes(batch: StringBatch, starts: Any, lengths: Any) -> Iterable[bytes]:
        begins, ends = _places_of_bytes(batch, starts, lengths)
        if strings is strings_between or batch.lengths.sum() > _LONG_TEXT * len(batch.texts):
            places = zip(batch.texts, begins.tolist(), ends.tolist(), strict=True)
            return [text[begin:end] for text, begin, end in places]
        data, splits = batch.joined()
        return strings(data, splits[:-1] + begins, splits[:-1] + ends)

    def substr(tensor: Any, pos: Any, len: Any, *, unit: str) -> Any:
        require_equal(
            pos.shape, len.shape, "pos and len should have the same shape, got: {} vs. {}"
        )
        shape = _common_shape(tensor.shape, pos.shape)
        places = [np.broadcast_to(one, shape).reshape(-1).astype(np.int64) for one in (pos, len)]
        if unit == "BYTE" or tensor.shape == shape:
            parts = parts_of_bytes if unit == "BYTE" else parts_of_characters
            texts = np.broadcast_to(tensor, shape).reshape(-1)
            found = _in_batches(parts, texts, *places)
            return string_tensor(shape, chain.from_iterable(found))
        rows = zip(
            np.broadcast_to(tensor, shape).flat, *(one.tolist() for one in places), strict=True
        )
        timed: Iterable[tuple[bytes, int, int]] = in_time(rows, lambda row: string_work(row[0]))
        return string_tensor(shape, starmap(_Characters().of, timed))

    register_kernel(SUBSTR, types={"T": INDEX}, registry=registry)(substr)


_Parts = Callable[[StringBatch, Any, Any], Iterable[bytes]]


def _in_batches(parts: _Parts, texts: Any, starts: Any, lengths: Any) -> Iterator[Iterable[bytes]]:
    """The parts of strings, found for some strings at a time."""
    done = 0
    for batch in string_batches(texts):
        these = slice(done, done + len(batch.texts))
        yield parts(batch, starts[these], lengths[these])
        done = these.stop


def _places_of_bytes(batch: StringBatch, starts: Any, lengths: Any) -> tuple[Any, Any]:
    """Where the parts of strings begin and end in these; a negative length takes all that follows."""
    texts, sizes = batch
    wrong = (starts < -sizes) | (starts > sizes)
    if wrong.any():
        at = int(wrong.argmax())
        raise InvalidArgumentError(f"pos {starts[at]} out of range for string {texts[at]!r}")
    begins = np.where(starts < 0, starts + sizes, starts)
    rest = sizes - begins
    return begins, begins + np.where(lengths < 0, rest, np.minimum(lengths, rest))


def characters_in_strings(
    data: Any, splits: Any, starts: Any, lengths: Any
) -> tuple[Any, Any] | None:
    """Where the asked characters of each string begin and end in a buffer; None where one has no such characters.

    From the end, TensorFlow finds no characters of a negative length; from the beginning none are asked for.
    """
    is_ascii = data.max(initial=0) < 0x80
    if is_ascii:
        sizes, firsts = np.diff(splits), splits[:-1]
    else:
        is_begin = _begin_characters(data)
        is_begin[splits[:-1][np.diff(splits) > 0]] = True  # the first byte, whatever it is
        sizes = counts_in_strings(is_begin, splits)
        firsts = np.cumsum(sizes) - sizes
    if ((starts < -sizes) | (starts > sizes) | ((starts < 0) & (lengths < 0))).any():
        return None
    begins = np.where(starts < 0, starts + sizes, starts)
    ends = np.minimum(begins + np.clip(lengths, 0, sizes), sizes)
    begins, ends = firsts + begins, firsts + ends
    if is_ascii:
        return begins, ends
    places = np.append(np.flatnonzero(is_begin), data.size)
    return places[begins], places[ends]


register_substr(characters_in_strings, strings_between)


def _common_shape(texts: tuple[int, ...], positions: tuple[int, ...]) -> tuple[int, ...]:
    if positions in ((), texts):
        return texts
    shape = broadcast_shape(texts, positions, "Incompatible shapes: {} vs. {}")
    if len(shape) > _MAX_BROADCAST_RANK:
        raise UnimplementedError(f"Substr broadcast not implemented for {len(shape)} dimensions")
    return shape


class _Characters:
    """As `characters_in_strings`, of single strings; the characters of one that stands in many rows are found once."""

    def __init__(self) -> None:
        self._text: bytes | None = None
        self._begins: Any = None

    def of(self, text: bytes, start: int, length: int) -> bytes:
        if text is not self._text:
            self._text, self._begins = text, _begins(text)
        size = len(self._begins) - 1
        if not -size <= start <= size or (start < 0 and length < 0):
            raise InvalidArgumentError(_OUT_OF_RANGE)
        begin = start if start >= 0 else size + start
        return text[self._begins[begin] : self._begins[min(begin + max(length, 0), size)]]


def _begins(text: bytes) -> Any:
    """Where characters begin, and the end: the first byte, and each that does not continue a character."""
    if len(text) < _LONG_TEXT:
        return [*(i for i, byte in enumerate(text) if not i or byte & 0xC0 != 0x80), len(text)]
    is_begin = np.frombuffer(text, np.uint8) & 0xC0 != 0x80
    is_begin[0] = True
    return np.append(np.flatnonzero(is_begin), len(text))
