"""The variables that a cluster takes: read before its program runs, and assigned to afterwards.

Nobody else writes to them meanwhile.

Source: VariableInfo, LockVariables in TensorFlow compiler/jit/xla_launch_util.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from opkernel.errors import UnimplementedError
from opkernel.runtime.engines.cluster import Cluster, Uninitialized

__all__ = ["run_with_variables", "value_of"]


def run_with_variables(
    cluster: Cluster, tensors: Sequence[Any], variables: Sequence[Any]
) -> list[Any]:
    """The results of a cluster, with variables as its last arguments.

    Args:
        cluster: It is compiled if it is not yet.
        tensors: The other arguments.
        variables: The resources.

    Raises:
        UnimplementedError: one is no variable.
        OpError: the engine cannot compile the cluster.
    """
    for one in variables:
        if not hasattr(one, "tensor_ref"):
            raise UnimplementedError(
                f"A compiled function can take variables, and no {type(one).__name__}"
            )
    with ExitStack() as held:
        # In one order, so that no two calls wait for each other.
        for one in sorted(set(variables), key=id):
            held.enter_context(one.tensor_ref.mutex)
        inputs = [*tensors, *map(value_of, variables)]
        program = cluster.program(inputs)
        results, written = program.run(inputs)
        for update, value in zip(program.resource_updates, written, strict=True):
            variable = variables[update.input_index - len(tensors)]
            variable.assign(value.copy(), update.dtype)
    return results


def value_of(variable: Any) -> Any:
    """The value of a variable now, `Uninitialized` where it has none."""
    if variable.is_initialized:
        return variable.tensor_ref.tensor
    return Uninitialized(variable.dtype)
