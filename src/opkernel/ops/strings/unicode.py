"""Characters and encodings: UnicodeDecode, UnicodeDecodeWithOffsets, UnicodeEncode, UnicodeTranscode, UnicodeScript.

`scripts.txt` (written by tools/record_unicode_tables.py) has the runs of code points of one script.

Source: TensorFlow core/ops/string_ops.cc, core/kernels/unicode_ops.cc, unicode_script_op.cc.
"""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from opkernel.device.made_bytes import GrowingArray, making_bytes
from opkernel.device.string_tensors import string_tensor
from opkernel.device.work_clock import in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import from_attrs
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.opdef.common_shapes.rules import check_input_ranks, set_outputs
from opkernel.ops.input_checks import require
from opkernel.ops.ragged.gather_range import lengths_to_splits
from opkernel.ops.registration import INDEX, register_kernel
from opkernel.ops.strings.encodings import CodePoints, Encoding, encoded_strings, input_encoding_of
from opkernel.types import DataType

_MAX_CODE_POINT = 0x10FFFF
_AT_ONCE = 1 << 16
"""So many code points are encoded at once."""
_LAST_CONTROL = 0x1F
_OUTPUT = "output_encoding: {'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}"
_DECODING = [
    "errors: {'strict', 'replace', 'ignore'} = 'replace'",
    "replacement_char: int = 65533",
    "replace_control_characters: bool = false",
]
_SPLITS = "Tsplits: {int32, int64} = DT_INT64"


def unicode_decode_shape(c: InferenceContext) -> None:
    """One split more than strings, characters of unknown number."""
    splits = c.vector(c.add(c.num_elements(c.input(0)), 1))
    set_outputs(c, [splits, *[c.vector(None) for _ in range(1, c.num_outputs())]])


def unicode_encode_shape(c: InferenceContext) -> None:
    """One string fewer than splits."""
    _, splits = check_input_ranks(c, 1, 1)
    c.set_output(0, c.vector(c.subtract(c.dim(splits, 0), 1)))


UNICODE_DECODE = register_op(
    "UnicodeDecode(input: string) -> row_splits: Tsplits, char_values: int32",
    attrs=["input_encoding: string", *_DECODING, _SPLITS],
    shape_fn=unicode_decode_shape,
    doc="The code points of each string, as the rows of a ragged tensor.",
)

UNICODE_DECODE_WITH_OFFSETS = register_op(
    "UnicodeDecodeWithOffsets(input: string) "
    "-> row_splits: Tsplits, char_values: int32, char_to_byte_starts: int64",
    attrs=["input_encoding: string", *_DECODING, _SPLITS],
    shape_fn=unicode_decode_shape,
    doc="The code points of each string and the bytes at which they begin, as ragged rows.",
)

UNICODE_ENCODE = register_op(
    "UnicodeEncode(input_values: int32, input_splits: Tsplits) -> output: string",
    attrs=[
        "errors: {'ignore', 'replace', 'strict'} = 'replace'",
        _OUTPUT,
        "replacement_char: int = 65533",
        _SPLITS,
    ],
    shape_fn=unicode_encode_shape,
    doc="A string of each row of code points.",
)

UNICODE_TRANSCODE = register_op(
    "UnicodeTranscode(input: string) -> output: string",
    attrs=["input_encoding: string", _OUTPUT, *_DECODING],
    shape_fn=unchanged_shape,
    doc="Each string in another encoding.",
)


@dataclass(frozen=True, slots=True)
class _Repair:
    """What becomes of what is no character, or a control character."""

    errors: str
    replacement_char: int
    replace_control_characters: bool
    """Whether control characters go, too."""
    refuses_controls: bool = False
    """Whether these are errors where `errors` is strict."""

    def __post_init__(self) -> None:
        if not 0 <= self.replacement_char <= _MAX_CODE_POINT:
            raise InvalidArgumentError(
                f"replacement_char out of unicode codepoint range: {self.replacement_char}"
            )

    def apply(self, found: CodePoints) -> CodePoints:
        """The characters, with what is none replaced or left out.

        Raises:
            InvalidArgumentError: there is what is no character, and `errors` is strict.
        """
        is_bad = found.is_error
        if self.replace_control_characters:
            is_bad = is_bad | (found.points <= _LAST_CONTROL)
        refused = is_bad if self.refuses_controls else found.is_error
        require(self.errors != "strict" or not refused.any(), "Invalid formatting on input string")
        if self.errors != "ignore":
            points = np.where(is_bad, np.uint32(self.replacement_char), found.points)
            return replace(found, points=points)
        rows = np.repeat(np.arange(found.counts.size), found.counts)
        counts = np.bincount(rows[~is_bad], minlength=found.counts.size)
        starts = None if found.starts is None else found.starts[~is_bad]
        return replace(found, points=found.points[~is_bad], counts=counts, starts=starts)


def _decoded(
    encoding: Encoding, repair: _Repair, splits: DataType, with_starts: bool, tensor: Any
) -> tuple[Any, ...]:
    """The splits and the code points of the strings of a tensor, and where they start if that is asked for."""
    counts = np.zeros(tensor.size, np.int64)
    strings = tensor.reshape(-1).tolist()
    with making_bytes("characters") as made:
        points = GrowingArray(DataType.DT_INT32, made)
        starts = GrowingArray(DataType.DT_INT64, made)
        for found in map(repair.apply, encoding.decode(strings, with_starts=with_starts)):
            counts[found.rows.start : found.rows.stop] += found.counts
            points.extend(found.points)
            if with_starts:
                starts.extend(found.starts)
    columns = [points.finished(), *([starts.finished()] if with_starts else [])]
    return lengths_to_splits(counts, splits), *columns


def _decoder(with_starts: bool) -> Callable[..., Callable[[Any], tuple[Any, ...]]]:
    @from_attrs(encoding=input_encoding_of, repair=_Repair)
    def unicode_decode(
        *, encoding: Encoding, repair: _Repair, Tsplits: DataType
    ) -> Callable[[Any], tuple[Any, ...]]:
        return partial(_decoded, encoding, repair, Tsplits, with_starts)

    return unicode_decode


for _op, _with_starts in ((UNICODE_DECODE, False), (UNICODE_DECODE_WITH_OFFSETS, True)):
    register_kernel(_op, types={"Tsplits": INDEX}, factory=True)(_decoder(_with_starts))


@register_kernel(UNICODE_TRANSCODE, factory=True)
@from_attrs(encoding=input_encoding_of, repair=partial(_Repair, refuses_controls=True))
def unicode_transcode(
    *, encoding: Encoding, repair: _Repair, output_encoding: str
) -> Callable[[Any], Any]:
    def transcode(tensor: Any) -> Any:
        found = map(repair.apply, encoding.decode(tensor.reshape(-1).tolist()))
        return string_tensor(tensor.shape, encoded_strings(found, output_encoding))

    return transcode


@register_kernel(UNICODE_ENCODE, types={"Tsplits": INDEX}, factory=True)
@from_attrs(repair=partial(_Repair, replace_control_characters=False))
def unicode_encode(*, repair: _Repair, output_encoding: str) -> Callable[[Any, Any], Any]:
    def encode(values: Any, splits: Any) -> Any:
        _check_rows(values, splits)
        found = map(repair.apply, in_time(_rows_of_points(values, splits), _AT_ONCE << 8))
        return string_tensor((splits.size - 1,), encoded_strings(found, output_encoding))

    return encode


def _rows_of_points(values: Any, splits: Any) -> Iterator[CodePoints]:
    """The rows of code points, some at a time; of long rows a piece at a time."""
    row, last = 0, splits.size - 1
    while row < last:
        begin = int(splits[row])
        next_row = max(int(np.searchsorted(splits, begin + _AT_ONCE, side="right")) - 1, row + 1)
        end = int(splits[next_row])
        for at in range(begin, max(end, begin + 1), _AT_ONCE):
            points = values[at : min(at + _AT_ONCE, end)]
            is_open = at + _AT_ONCE < end
            is_whole = end - begin <= _AT_ONCE
            counts = np.diff(splits[row : next_row + 1]) if is_whole else [len(points)]
            is_bad = (points < 0) | (points > _MAX_CODE_POINT) | (points >> 11 == 0xD800 >> 11)
            rows = range(row, next_row)
            yield CodePoints(rows, np.asarray(counts), points.astype(np.uint32), is_bad, is_open)
        row = next_row


def _check_rows(values: Any, splits: Any) -> None:
    if values.ndim != 1 or splits.ndim != 1:
        raise InvalidArgumentError("Both the input_tensor and input_splits should be of rank 1.")
    if not splits.size:
        raise InvalidArgumentError(
            f"Input_splits should contain elements, but given input_values has {values.size} elements"
        )
    require(splits[0] == 0, "First value in input_splits must be zero.")
    if (np.diff(splits) < 0).any():
        raise InvalidArgumentError("Values in input_splits must be equal or in ascending order.")
    if splits[-1] != values.size:
        raise InvalidArgumentError(
            "Last value in input_splits must be equal to length of input_tensor."
        )


UNICODE_SCRIPT = register_op(
    "UnicodeScript(input: int32) -> output: int32",
    shape_fn=unchanged_shape,
    doc="ICU's number of the script of each code point; -1 for what is none.",
)


@functools.cache
def _runs() -> tuple[Any, Any]:
    """Where the runs begin, and the script of each, with what is no code point around."""
    lines = Path(__file__).with_name("scripts.txt").read_text("ascii").splitlines()
    runs = [line.split() for line in lines]
    starts = [int(start, 16) for start, _ in runs]
    scripts = [int(script) for _, script in runs]
    return np.array([*starts, 0x110000], np.int32), np.array([-1, *scripts, -1], np.int32)


@register_kernel(UNICODE_SCRIPT)
def unicode_script(input: Any) -> Any:
    starts, scripts = _runs()
    return np.asarray(scripts[np.searchsorted(starts, input, side="right")])
