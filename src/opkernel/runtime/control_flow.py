"""The ops that the plan turns into Python of its own: calls, If, While, Case; Switch by itself.

Sources: TensorFlow core/kernels/functional_ops.cc, core/kernels/control_flow_ops.cc.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import numpy as np

from opkernel.graph import FunctionLibraryDefinition, Operation
from opkernel.graph.control_flow_ops import LOW_LEVEL_CONTROL_FLOW
from opkernel.graph.tensor_facts import TensorFacts
from opkernel.kernel import MATRIX_PRODUCTS, Step, one_blas_thread
from opkernel.proto import FunctionDef
from opkernel.runtime.plan_control_flow import scalar_of, switch_index
from opkernel.runtime.plan_writer import DEAD, PlanWriter

__all__ = [
    "FUNCTIONAL_OPS",
    "STRUCTURAL_OPS",
    "Function",
    "FunctionLibrary",
    "branch_index",
    "switch",
    "switch_n",
    "truth",
]


class Function(Protocol):
    """A function of the graph's library."""

    @property
    def name(self) -> str:
        """The name of the FunctionDef."""

    @property
    def definition(self) -> FunctionDef:
        """The function, as it is in the library."""

    @property
    def plan(self) -> Any:
        """The executor of its body."""

    @property
    def runtime(self) -> Any:
        """Gives the functions that it calls."""

    def for_arguments(self, facts: Sequence[TensorFacts]) -> "Function":
        """The function with a plan for arguments of which this is known; it may be itself."""

    def __call__(self, step: Step, *arguments: Any) -> Sequence[Any]:
        """Run the function; the results are its outputs, flat."""


class FunctionLibrary(Protocol):
    """Gives the functions that the attrs of a node name."""

    def functions(self, op: Operation, attr: str) -> Sequence[Function]:
        """The functions of an attr of type `func` or `list(func)`."""

    def function_of(self, op: Operation) -> Function | None:
        """The function that a node calls by having its name as op; None for all other nodes."""

    def add_functions(self, library: FunctionLibraryDefinition) -> None:
        """Know the functions, too, that a pass has added to a copy of the library."""


Emitter = Callable[[PlanWriter, Operation, FunctionLibrary], None]


def truth(tensor: Any) -> bool:
    """Whether a condition holds.

    A scalar holds if it is true, not zero, or a string that is not empty; any other tensor if it
    has elements.
    """
    array = np.asarray(tensor)
    return bool(array[()]) if array.ndim == 0 else array.size > 0


def branch_index(index: Any, branches: int) -> int:
    """The branch that a Case takes: the last one stands for all indices out of range."""
    chosen = int(index)
    return chosen if 0 <= chosen < branches else branches - 1


def switch(step: Step, data: Any, predicate: Any) -> tuple[Any, Any]:
    """The data on the side that the predicate chooses, DEAD on the other."""
    return (DEAD, data) if scalar_of(predicate) else (data, DEAD)


def switch_n(outputs: int) -> Callable[[Step, Any, Any], tuple[Any, ...]]:
    """A switch between several outputs, of which the last stands for all indices out of range."""

    def choose(step: Step, data: Any, index: Any) -> tuple[Any, ...]:
        chosen = switch_index(index, outputs)
        return tuple([data if output == chosen else DEAD for output in range(outputs)])

    return choose


def _call(writer: PlanWriter, op: Operation, library: FunctionLibrary) -> None:
    (function,) = library.functions(op, "f")
    writer.call_function(op, writer.bind(function, function.name))


def _symbolic_gradient(writer: PlanWriter, op: Operation, library: FunctionLibrary) -> None:
    function = library.function_of(op)
    assert function is not None
    writer.call_function(op, writer.bind(function, function.name))


def _if(writer: PlanWriter, op: Operation, library: FunctionLibrary) -> None:
    then, otherwise = (
        writer.bind(function, function.name)
        for attr in ("then_branch", "else_branch")
        for function in library.functions(op, attr)
    )
    condition, *inputs = (writer.value(tensor) for tensor in op.inputs)
    test = f"{writer.bind(truth, 'truth')}({condition})"
    writer.call_function(op, f"({then} if {test} else {otherwise})", inputs)


def _case(writer: PlanWriter, op: Operation, library: FunctionLibrary) -> None:
    branches = library.functions(op, "branches")

    def branch(index: Any) -> Callable[..., Any]:
        return branches[branch_index(index, len(branches))]

    index, *inputs = (writer.value(tensor) for tensor in op.inputs)
    writer.call_function(op, f"{writer.bind(branch, op.name + '_branch')}({index})", inputs)


def _while(writer: PlanWriter, op: Operation, library: FunctionLibrary) -> None:
    (condition,), (body,) = (library.functions(op, attr) for attr in ("cond", "body"))
    inputs = [writer.value(tensor) for tensor in op.inputs]
    loop = writer.bind(_while_loop(condition, body), f"while_{body.name}")
    writer.call_function(op, loop, inputs)


def _while_loop(condition: Function, body: Function) -> Callable[..., Any]:
    """A loop as a function of the step and the loop variables."""
    multiplies = any(node.op in MATRIX_PRODUCTS for node in body.definition.node_def)
    hold: AbstractContextManager[None] = one_blas_thread if multiplies else nullcontext()

    def loop(step: Step, *start: Any) -> Sequence[Any]:
        variables: Sequence[Any] = start
        with hold:
            while truth(condition(step, *variables)[0]):
                step.check()
                variables = body(step, *variables)
        return variables

    return loop


FUNCTIONAL_OPS: dict[str, Emitter] = {
    "Case": _case,
    "If": _if,
    "PartitionedCall": _call,
    "StatefulPartitionedCall": _call,
    "StatelessCase": _case,
    "StatelessIf": _if,
    "StatelessWhile": _while,
    "SymbolicGradient": _symbolic_gradient,
    "While": _while,
}
"""What writes the plan's statements for an op that calls functions, by the op's name."""

STRUCTURAL_OPS = LOW_LEVEL_CONTROL_FLOW | FUNCTIONAL_OPS.keys() | {"NoOp"}
"""The ops that executors run themselves, without kernels."""
