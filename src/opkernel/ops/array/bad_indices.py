"""Index vectors outside of the tensor that they index: errors, or a way to ignore them.

Source: TensorFlow core/util/bad_indices_policy.h, core/kernels/gather_nd_op.h, scatter_nd_op.cc.
"""

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.types import TensorShape


class BadIndicesPolicy(enum.Enum):
    """The attr `bad_indices_policy`. The default on the CPU is an error."""

    DEFAULT = "DEFAULT"
    ERROR = "ERROR"
    IGNORE = "IGNORE"

    @classmethod
    def from_attr(cls, text: str) -> "BadIndicesPolicy":
        """The policy of an attr value.

        Raises:
            InvalidArgumentError: there is no such policy.
        """
        try:
            return cls(text or "DEFAULT")
        except ValueError:
            raise InvalidArgumentError(f"Unknown bad indices handling attribute: {text}") from None


def find_bad_indices(rows: Any, limits: Sequence[int]) -> np.ndarray[Any, Any] | None:
    """Which of the index vectors [n, depth] lie outside of `limits`; None if none does."""
    if rows.size == 0:
        return None
    outside = (rows < 0) | (rows >= np.array(limits))
    return outside.any(axis=1) if outside.any() else None


def bad_index_error(
    rows: Any, bad: Any, outer: Sequence[int], what: str, shape: Sequence[int]
) -> InvalidArgumentError:
    """The error for the first bad index vector.

    Args:
        rows: the index vectors [n, depth].
        bad: which of them are bad.
        outer: the shape that the n of them stand in.
        what: what is indexed, such as "shape".
        shape: its shape.
    """
    first = int(np.argmax(bad))
    place = ",".join(str(i) for i in np.unravel_index(first, tuple(outer)))
    return InvalidArgumentError(
        f"indices[{place}] = {rows[first].tolist()} does not index into {what} {TensorShape(shape)}"
    )
