"""The part of a program's memory that is known when the program is made."""

from __future__ import annotations

from collections.abc import Sequence

from opkernel.device.budget import Budget
from opkernel.device.work_clock import in_time
from opkernel.errors import DeadlineExceededError, OpError
from opkernel.graph import Operation
from opkernel.graph.core.control_flow_ops import LOW_LEVEL_CONTROL_FLOW
from opkernel.kernel.bounded import KnownOutputs, known_outputs
from opkernel.runtime.plan.functional_ops import FUNCTIONAL_OPS, RUN_BY_EXECUTORS
from opkernel.runtime.program.kernels import KernelCache

_OF_OUTPUT = 1 << 14
"""The work that finding the shape of an output is."""


def check_known_sizes(budget: Budget, order: Sequence[Operation], kernels: KernelCache) -> None:
    """Refuse a program if one of its nodes is known to give more than the memory holds.

    Control flow of TensorFlow 1 may leave nodes out, so that graphs with it are never refused.

    Raises:
        ResourceExhaustedError: a node gives too much, whatever is fed.
    """
    if not LOW_LEVEL_CONTROL_FLOW.isdisjoint({op.type for op in order}):
        return
    for op in order:
        known = _known(op, kernels)
        if known is not None and known.num_bytes:
            try:
                budget.check_memory(known.num_bytes, known.what)
            except OpError as error:
                error.add_node(op.name, op.type)
                raise


def _known(op: Operation, kernels: KernelCache) -> KnownOutputs | None:
    """The known facts about a node's outputs; None where a function or an error gives them."""
    library = op.graph.function_library
    if op.type in FUNCTIONAL_OPS or op.type in RUN_BY_EXECUTORS or op.type in library:
        return None
    try:
        shapes = [tensor.shape for tensor in in_time(op.outputs, _OF_OUTPUT)]
        return known_outputs(
            kernels.kernel(op),
            [tuple(s.as_tensor_shape()) if s.is_fully_defined() else None for s in shapes],
        )
    except DeadlineExceededError:
        raise
    except OpError:  # the step that runs the node will tell the error
        return None
