"""The variables that a cluster takes: read before its program runs, and assigned to afterwards.

Nobody else writes to them meanwhile.

Source: VariableInfo, LockVariables in TensorFlow compiler/jit/xla_launch_util.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from opkernel.errors import UnimplementedError
from opkernel.interrupts import holding
from opkernel.runtime.engines.cluster import Uninitialized
from opkernel.runtime.engines.engine import ResourceUpdate

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


class Variables:
    """The arguments of a cluster of which the last are variables.

    Args:
        tensors: The other arguments.
        resources: The variables.

    Raises:
        UnimplementedError: one is another resource.
    """

    def __init__(self, tensors: Sequence[Any], resources: Sequence[Any]) -> None:
        for one in resources:
            if not hasattr(one, "tensor_ref"):
                raise UnimplementedError(
                    f"A compiled function can take variables, and no {type(one).__name__}"
                )
        self._tensors, self._resources = tensors, resources

    def locked(self) -> AbstractContextManager[None]:
        """A scope in which nobody else writes to them."""
        # In one order, so that no two calls wait for each other.
        return holding([one.tensor_ref.mutex for one in sorted(set(self._resources), key=id)])

    def inputs(self) -> list[Any]:
        """All arguments; of a variable its value now, `Uninitialized` where it has none."""
        return [
            *self._tensors,
            *(
                one.tensor_ref.tensor if one.is_initialized else Uninitialized(one.dtype)
                for one in self._resources
            ),
        ]

    def assign(self, updates: Sequence[ResourceUpdate], values: Sequence[Any]) -> None:
        """Give variables the values that a program computed."""
        for update, value in zip(updates, values, strict=True):
            variable = self._resources[update.input_index - len(self._tensors)]
            variable.assign(value, update.dtype)
