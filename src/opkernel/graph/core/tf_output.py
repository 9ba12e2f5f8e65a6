"""TF_Output, TF_Input: an output or input of an operation by number, as TensorFlow's C API names it.

Source: TensorFlow c/c_api.h.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkernel.records import dataclass

if TYPE_CHECKING:
    from opkernel.graph.core.operation import Operation


@dataclass(frozen=True)
class TF_Output:  # noqa: N801  # as TensorFlow spells it
    """An output: the operation and its number, unchecked."""

    oper: Operation
    index: int


@dataclass(frozen=True)
class TF_Input:  # noqa: N801  # as TensorFlow spells it
    """An input: the operation and its number, unchecked."""

    oper: Operation
    index: int
