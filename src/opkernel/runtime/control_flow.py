"""The ops that the plan turns into Python of its own: calls, If, While, Case, Switch, Merge.

Sources: TensorFlow core/kernels/functional_ops.cc, core/kernels/control_flow_ops.cc.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from opkernel.errors import InternalError, InvalidArgumentError, UnimplementedError
from opkernel.graph import Operation
from opkernel.kernel import Step
from opkernel.runtime.control_flow_ops import LOOP_OPS
from opkernel.runtime.plan_writer import DEAD, PlanWriter

__all__ = ["STRUCTURAL_OPS", "Function", "FunctionLibrary", "switch", "switch_n"]


class Function(Protocol):
    """A function of the graph's library."""

    @property
    def name(self) -> str:
        """The name of the FunctionDef."""

    def __call__(self, step: Step, *arguments: Any) -> Sequence[Any]:
        """Run the function; the results are its outputs, flat."""


class FunctionLibrary(Protocol):
    """Gives the functions that the attrs of a node name."""

    def functions(self, op: Operation, attr: str) -> Sequence[Function]:
        """The functions of an attr of type `func` or `list(func)`."""

    def function_of(self, op: Operation) -> Function | None:
        """The function that a node calls by having its name as op; None for all other nodes."""


Emitter = Callable[[PlanWriter, Operation, FunctionLibrary], None]


def truth(tensor: Any) -> bool:
    """Whether a condition holds.

    A scalar holds if it is true, not zero, or a string that is not empty; any other tensor if it
    has elements.
    """
    array = np.asarray(tensor)
    return bool(array[()]) if array.ndim == 0 else array.size > 0


def merge(*tensors: Any) -> tuple[Any, Any]:
    """The first tensor that is alive, and its index."""
    for index, tensor in enumerate(tensors):
        if tensor is not DEAD:
            return tensor, np.int32(index)
    return DEAD, DEAD


def switch(step: Step, data: Any, predicate: Any) -> tuple[Any, Any]:
    """The data on the side that the predicate chooses, DEAD on the other."""
    return (DEAD, data) if _scalar(predicate) else (data, DEAD)


def switch_n(outputs: int) -> Callable[[Step, Any, Any], tuple[Any, ...]]:
    """A switch between several outputs, of which the last stands for all indices out of range."""

    def choose(step: Step, data: Any, index: Any) -> tuple[Any, ...]:
        chosen = int(_scalar(index))
        chosen = chosen if 0 <= chosen < outputs else outputs - 1
        return tuple([data if output == chosen else DEAD for output in range(outputs)])

    return choose


def _scalar(tensor: Any) -> Any:
    """What a switch goes by.

    Raises:
        InvalidArgumentError: it is not a scalar.
    """
    if tensor.ndim:
        raise InvalidArgumentError(
            f"The second input must be a scalar, but it has shape {list(tensor.shape)}"
        )
    return tensor[()]


def _call(writer: PlanWriter, op: Operation, library: FunctionLibrary) -> None:
    (function,) = library.functions(op, "f")
    writer.call(op, writer.bind(function, function.name))


def _if(writer: PlanWriter, op: Operation, library: FunctionLibrary) -> None:
    then, otherwise = (
        writer.bind(function, function.name)
        for attr in ("then_branch", "else_branch")
        for function in library.functions(op, attr)
    )
    condition, *inputs = (writer.value(tensor) for tensor in op.inputs)
    test = f"{writer.bind(truth, 'truth')}({condition})"
    writer.call(op, f"({then} if {test} else {otherwise})", inputs)


def _case(writer: PlanWriter, op: Operation, library: FunctionLibrary) -> None:
    branches = library.functions(op, "branches")

    def branch(index: Any) -> Callable[..., Any]:
        chosen = int(index)
        return branches[chosen if 0 <= chosen < len(branches) else -1]

    index, *inputs = (writer.value(tensor) for tensor in op.inputs)
    writer.call(op, f"{writer.bind(branch, op.name + '_branch')}({index})", inputs)


def _while(writer: PlanWriter, op: Operation, library: FunctionLibrary) -> None:
    (condition,), (body,) = (library.functions(op, attr) for attr in ("cond", "body"))
    inputs = [writer.value(tensor) for tensor in op.inputs]
    loop = writer.bind(_while_loop(condition, body), f"while_{body.name}")
    writer.call(op, loop, inputs)


def _while_loop(condition: Callable[..., Any], body: Callable[..., Any]) -> Callable[..., Any]:
    """A loop as a function of the step and the loop variables."""

    def loop(step: Step, *variables: Any) -> Sequence[Any]:
        while truth(condition(step, *variables)[0]):
            step.check()
            variables = body(step, *variables)
        return variables

    return loop


def _switch(writer: PlanWriter, op: Operation, library: FunctionLibrary) -> None:
    writer.call(op, writer.bind(switch, "switch"), may_be_dead=True)


def _switch_n(writer: PlanWriter, op: Operation, library: FunctionLibrary) -> None:
    function = switch_n(len(op.outputs))
    writer.call(op, writer.bind(function, "switch_n"), may_be_dead=True)


def _merge(writer: PlanWriter, op: Operation, library: FunctionLibrary) -> None:
    writer.merge(op, writer.bind(merge, "merge"))


def _no_op(writer: PlanWriter, op: Operation, library: FunctionLibrary) -> None:
    writer.no_op(op)


def _loop_op(writer: PlanWriter, op: Operation, library: FunctionLibrary) -> None:
    raise UnimplementedError(
        f"{op.type}: plans do not run loops of TensorFlow 1, the dataflow executor does (node "
        f"{op.name!r})",
        node=op.name,
        op=op.type,
    )


def _argument(writer: PlanWriter, op: Operation, library: FunctionLibrary) -> None:
    raise InternalError(
        f"{op.type}: argument without a value (node {op.name!r})", node=op.name, op=op.type
    )


STRUCTURAL_OPS: dict[str, Emitter] = {
    **dict.fromkeys(LOOP_OPS, _loop_op),
    "_Arg": _argument,
    "_Merge": _merge,
    "_Retval": lambda writer, op, library: writer.forward(op),
    "_SwitchN": _switch_n,
    "Case": _case,
    "ControlTrigger": lambda writer, op, library: None,  # the order is all; it is never dead
    "If": _if,
    "Merge": _merge,
    "NoOp": _no_op,
    "PartitionedCall": _call,
    "StatefulPartitionedCall": _call,
    "StatelessCase": _case,
    "StatelessIf": _if,
    "StatelessWhile": _while,
    "Switch": _switch,
    "While": _while,
}
"""What writes the plan's statements for an op, by the op's name."""
