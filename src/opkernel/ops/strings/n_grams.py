"""StringNGrams: the runs of neighbours in each row of a ragged tensor, joined.

Source: TensorFlow core/ops/string_ops.cc, core/kernels/string_ngrams_op.cc.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from opkernel.device.string_tensors import joining, string_tensor
from opkernel.device.work_clock import in_time, parts_work
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes.shape_rule import shape_rule
from opkernel.ops.input_checks import require_equal
from opkernel.ops.int32_attr import int32_attr
from opkernel.ops.kernel_types import INDEX
from opkernel.ops.ragged.rows import lengths_to_splits
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

STRING_NGRAMS = register_op(
    "StringNGrams",
    inputs=["data: string", "data_splits: Tsplits"],
    outputs=["ngrams: string", "ngrams_splits: Tsplits"],
    attrs=[
        "separator: string",
        "ngram_widths: list(int) >= 0",
        "left_pad: string",
        "right_pad: string",
        "pad_width: int",
        "preserve_short_sequences: bool",
        "Tsplits: {int32, int64} = DT_INT64",
    ],
    shape_fn=shape_rule("[?], [?] -> [?], in1"),
    doc="The n-grams of each row, of each width, with `pad_width` pads at its ends (-1: as many as fit).",
)


@dataclass(frozen=True, slots=True)
class _NGrams:
    """How a row becomes n-grams."""

    widths: list[int]
    left_pad: bytes
    right_pad: bytes
    pad_width: int
    preserve_short: bool

    def pads(self, width: int) -> int:
        """The pads at each end for n-grams of this width."""
        return width - 1 if self.pad_width < 0 else min(self.pad_width, width - 1)

    def counts(self, lengths: Any) -> Any:
        """How many n-grams rows of these lengths have."""
        total = np.zeros_like(lengths)
        for width in self.widths:
            total += np.maximum(lengths + 2 * self.pads(width) - width + 1, 0)
        if self.preserve_short:
            total += (total == 0) & (lengths > 0)
        return total

    def of(self, row: list[bytes]) -> Iterator[list[bytes]]:
        """The parts of each n-gram of a row."""
        is_short = self.preserve_short and len(row) > 0
        for width in self.widths:
            pads = self.pads(width)
            padded = [self.left_pad] * pads + row + [self.right_pad] * pads
            for start in range(len(padded) - width + 1):
                is_short = False
                yield padded[start : start + width]
        if is_short:
            pads = max(self.pad_width, 0)
            yield [self.left_pad] * pads + row + [self.right_pad] * pads


@register_kernel(STRING_NGRAMS, types={"Tsplits": INDEX}, factory=True)
def string_n_grams(
    *,
    separator: str,
    ngram_widths: list[int],
    left_pad: str,
    right_pad: str,
    pad_width: int,
    preserve_short_sequences: bool,
    Tsplits: DataType,
) -> Callable[[Any, Any], tuple[Any, Any]]:
    int32_attr("pad_width", pad_width)
    glue, left, right = (
        text.encode("utf-8", "surrogateescape") for text in (separator, left_pad, right_pad)
    )
    grams = _NGrams(ngram_widths, left, right, pad_width, preserve_short_sequences)

    def compute(data: Any, data_splits: Any) -> tuple[Any, Any]:
        if any(width <= 0 for width in ngram_widths):
            raise InvalidArgumentError("ngram_widths must contain positive values")
        splits = data_splits.reshape(-1)
        if not (splits.size and data.size):
            return string_tensor(data.shape, [b""] * data.size), data_splits.copy()
        _check_splits(splits, data.size)
        counts = grams.counts(np.diff(splits.astype(np.int64)))
        _check_size(grams, int(counts.sum()))
        output_splits = lengths_to_splits(counts, Tsplits)
        rows = zip(splits.tolist(), splits.tolist()[1:], strict=False)
        flat = data.reshape(-1).tolist()
        found = (gram for a, b in in_time(rows) for gram in grams.of(flat[a:b]))
        ngrams = string_tensor((int(counts.sum()),), map(joining(glue), in_time(found, parts_work)))
        return ngrams, output_splits.reshape(data_splits.shape)

    return compute


def _check_size(grams: _NGrams, count: int) -> None:
    """Refuse rows with pads, and so many n-grams, as do not fit."""
    pads = [2 * grams.pads(width) for width in grams.widths]
    check_allocation((max([1, *pads]),), DataType.DT_STRING)
    check_allocation((count,), DataType.DT_STRING)


def _check_splits(splits: Any, size: int) -> None:
    """Raise InvalidArgumentError unless the splits go up from 0 to the size."""
    require_equal(splits[0], 0, "First split value must be 0, got {}")
    before, after = splits[:-1], splits[1:]
    wrong = np.flatnonzero((after < before) | (after > size))
    if wrong.size:
        at = wrong[0]
        raise InvalidArgumentError(
            f"Invalid split value {after[at]}, must be in [{before[at]}, {size}]"
        )
    require_equal(size, splits[-1], "Last split value must be data size. Expected {}, got {}")
