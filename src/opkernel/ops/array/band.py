"""Bands of diagonals: which elements of a matrix they are, and how they are stacked.

A diagonal index counts from the main diagonal, and is positive above it. The diagonals of a band are
stacked from the top. A diagonal shorter than the longest stands left or right in its row: the attr
`align` says which, for the diagonals above and for those below the main diagonal.

Source: TensorFlow core/kernels/matrix_diag_op.cc.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from opkernel.errors import InvalidArgumentError
from opkernel.ops.input_checks import require_rank_at_most


class Band(NamedTuple):
    """The diagonals from `lower` to `upper`."""

    lower: int
    upper: int

    @classmethod
    def of(cls, index: Any) -> "Band":
        """The band of the input `k`: one diagonal, or the lowest and the highest.

        Raises:
            InvalidArgumentError: `k` is no scalar and no vector of one or two elements.
        """
        require_rank_at_most(index, 1, "diag_index must be a scalar or vector, received shape: {}")
        if index.size == 0:
            raise InvalidArgumentError("Expected diag_index to have at least 1 element")
        if index.size > 2:
            raise InvalidArgumentError(
                f"diag_index must have only one or two elements, received {index.size} elements."
            )
        lower, upper = index.item(0), index.item(-1)
        if lower > upper:
            raise InvalidArgumentError(
                f"lower_diag_index must not be larger than upper_diag_index: {lower} > {upper}"
            )
        return cls(lower, upper)

    @property
    def size(self) -> int:
        """The number of diagonals."""
        return self.upper - self.lower + 1

    def longest(self, rows: int, columns: int) -> int:
        """The length of the longest diagonal, in a matrix of this size."""
        return min(rows + min(self.upper, 0), columns - max(self.lower, 0))

    def packed_shape(self, rows: int, columns: int) -> tuple[int, ...]:
        """The shape of the stacked diagonals of one matrix."""
        longest = self.longest(rows, columns)
        return (longest,) if self.size == 1 else (self.size, longest)

    def check_inside(self, rows: int, columns: int) -> None:
        """Raise InvalidArgumentError unless the band lies in matrices of this size."""
        for name, index in (("lower", self.lower), ("upper", self.upper)):
            if index != 0 and not -rows < index < columns:
                raise InvalidArgumentError(
                    f"{name}_diag_index is out of bound: {index}. It must be between {-rows} and "
                    f"{columns}"
                )

    def places(
        self, rows: int, columns: int, longest: int, align: str
    ) -> Iterator[tuple[int, slice, slice]]:
        """For each diagonal its row and columns in the stack, and its places in a flat matrix."""
        above, below = align.split("_")
        for row, index in enumerate(range(self.upper, self.lower - 1, -1)):
            length = min(rows + min(index, 0), columns - max(index, 0))
            if length <= 0:
                continue
            left = (index >= 0 and above == "LEFT") or (index <= 0 and below == "LEFT")
            first = 0 if left else longest - length
            start = max(index, 0) - min(index, 0) * columns
            stop = start + (length - 1) * (columns + 1) + 1
            yield row, slice(first, first + length), slice(start, stop, columns + 1)
