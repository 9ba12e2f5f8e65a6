"""The ops that the plan turns into Python of its own: calls, If, While, Case; Switch by itself.

Sources: TensorFlow core/kernels/functional_ops.cc, core/kernels/control_flow_ops.cc.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol

from opkernel.graph import FunctionLibraryDefinition, Operation
from opkernel.graph.core.structural_ops import LOW_LEVEL_CONTROL_FLOW
from opkernel.graph.inference.tensor_facts import TensorFacts
from opkernel.kernel import Step, one_blas_thread
from opkernel.opdef import global_op_registry
from opkernel.proto import FunctionDef
from opkernel.runtime.plan import tree
from opkernel.runtime.plan.builder import PlanBuilder
from opkernel.runtime.plan.services import DEAD, branch_index, scalar_of, switch_index, truth

if TYPE_CHECKING:
    from opkernel.kernel import GraphCollector


class LibraryFunction(Protocol):
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
    def call_steps(self) -> Any:
        """Gives calls their steps (CallSteps); None where the caller's will do."""

    @property
    def runtime(self) -> Any:
        """Gives the functions that it calls."""

    def for_arguments(self, facts: Sequence[TensorFacts]) -> "LibraryFunction":
        """The function with a plan for arguments of which this is known; it may be itself."""

    def collect_graphs(self, collector: "GraphCollector") -> None:
        """Have a collector take the graphs that are made of it."""

    def __call__(self, step: Step, *arguments: Any) -> Sequence[Any]:
        """Run the function; the results are its outputs, flat."""


class FunctionLibrary(Protocol):
    """Gives the functions that the attrs of a node name."""

    def functions(self, op: Operation, attr: str) -> Sequence[LibraryFunction]:
        """The functions of an attr of type `func` or `list(func)`."""

    def function_of(self, op: Operation) -> LibraryFunction | None:
        """The function that a node calls by having its name as op; None for all other nodes."""

    def add_functions(self, library: FunctionLibraryDefinition) -> None:
        """Know the functions, too, that a pass has added to a copy of the library."""


Emitter = Callable[[PlanBuilder, Operation, FunctionLibrary], None]


def switch(data: Any, predicate: Any) -> tuple[Any, Any]:
    """The data on the side that the predicate chooses, DEAD on the other."""
    return (DEAD, data) if scalar_of(predicate) else (data, DEAD)


def switch_n(outputs: int) -> Callable[[Any, Any], tuple[Any, ...]]:
    """A switch between several outputs, of which the last stands for all indices out of range."""

    def choose(data: Any, index: Any) -> tuple[Any, ...]:
        chosen = switch_index(index, outputs)
        return tuple([data if output == chosen else DEAD for output in range(outputs)])

    return choose


class WhileLoop:
    """A While as a function of the step and the loop variables.

    Attributes:
        condition: Says whether there is a turn.
        body: Gives the variables for the next one.
    """

    def __init__(self, condition: LibraryFunction, body: LibraryFunction) -> None:
        self.condition, self.body = condition, body
        traits = map(global_op_registry().traits, {node.op for node in body.definition.node_def})
        multiplies = any(one.cost == "product" for one in traits)
        self._hold: Callable[[], AbstractContextManager[None]] = (
            one_blas_thread if multiplies else nullcontext
        )

    def __call__(self, step: Step, *start: Any) -> Sequence[Any]:
        """Run the loop; the variables at its end."""
        condition, body = self.condition, self.body
        variables: Sequence[Any] = start
        with self._hold():
            while truth(condition(step, *variables)[0]):
                step.check()
                variables = body(step, *variables)
        return variables


class Choice:
    """A Case: gives the function that it calls for an index.

    Attributes:
        branches: The functions.
    """

    def __init__(self, branches: Sequence[LibraryFunction]) -> None:
        self.branches = branches

    def __call__(self, index: Any) -> LibraryFunction:
        """The function."""
        return self.branches[branch_index(index, len(self.branches))]


def _call(builder: PlanBuilder, op: Operation, library: FunctionLibrary) -> None:
    (function,) = library.functions(op, "f")
    _call_function(builder, op, function)


def call_by_name(builder: PlanBuilder, op: Operation, library: FunctionLibrary) -> None:
    """Add the statement of a node that calls the function of its name, or that it is a gradient of."""
    function = library.function_of(op)
    assert function is not None
    _call_function(builder, op, function)


def _call_function(builder: PlanBuilder, op: Operation, function: LibraryFunction) -> None:
    builder.call(op, _bound(builder, function), builder.inputs(op), tree.FunctionCall)


def _bound(builder: PlanBuilder, function: LibraryFunction) -> tree.Name:
    return builder.bind(function, function.name, "function")


def _if(builder: PlanBuilder, op: Operation, library: FunctionLibrary) -> None:
    then, otherwise = (
        _bound(builder, function)
        for attr in ("then_branch", "else_branch")
        for function in library.functions(op, attr)
    )
    condition, *inputs = builder.inputs(op)
    test = tree.Apply(builder.service(truth), (condition,))
    builder.call(op, then, inputs, tree.FunctionCall, test=test, otherwise=otherwise)


def _case(builder: PlanBuilder, op: Operation, library: FunctionLibrary) -> None:
    index, *inputs = builder.inputs(op)
    choice = builder.bind(
        Choice(library.functions(op, "branches")), f"{op.name}_branch", "function"
    )
    builder.call(op, choice, inputs, tree.FunctionCall, index=index)


def _while(builder: PlanBuilder, op: Operation, library: FunctionLibrary) -> None:
    (condition,), (body,) = (library.functions(op, attr) for attr in ("cond", "body"))
    loop = builder.bind(WhileLoop(condition, body), f"while_{body.name}", "function")
    builder.call(op, loop, builder.inputs(op), tree.FunctionCall)


FUNCTIONAL_OPS: dict[str, Emitter] = {
    "Case": _case,
    "If": _if,
    "PartitionedCall": _call,
    "StatefulPartitionedCall": _call,
    "StatelessCase": _case,
    "StatelessIf": _if,
    "StatelessWhile": _while,
    "SymbolicGradient": call_by_name,
    "While": _while,
    "_If": _if,
    "_While": _while,
}
"""The functions that build the plan's statements for ops that call functions, by op."""


def calls_functions(op: Operation) -> bool:
    """Whether a node calls functions of its graph's library: by its op, or by the name of one as op."""
    return op.type in FUNCTIONAL_OPS or op.type in op.graph.function_library


def calling(ops: Sequence[Operation]) -> list[Operation]:
    """The nodes among those of one graph that call functions."""
    examples = {op.signature.op_type: op for op in ops}
    types = {name for name, op in examples.items() if calls_functions(op)}
    return [op for op in ops if op.signature.op_type in types] if types else []


RUN_BY_EXECUTORS = LOW_LEVEL_CONTROL_FLOW | FUNCTIONAL_OPS.keys() | {"NoOp"}
"""The ops that executors run themselves, without kernels."""
