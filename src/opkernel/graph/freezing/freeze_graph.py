"""freeze_graph, freeze_function: a graph with constants in the place of variables, and the tables that it keeps.

`ReadingPart` is what feeds and fetches need of a graph, whose variables can become constants.

Source: TensorFlow python/framework/convert_to_constants.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from opkernel.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    UnimplementedError,
)
from opkernel.graph.core.graph import Graph
from opkernel.graph.core.operation import Operation
from opkernel.graph.core.structural_ops import (
    ASSIGNMENTS,
    LOW_LEVEL_CONTROL_FLOW,
    PLACEHOLDER_OPS,
    STRUCTURAL_OPS,
    VARIABLE_OPS,
)
from opkernel.graph.core.tensor import Tensor
from opkernel.graph.edit.graph_edit import Elements, GraphEdit, Tensors, listed
from opkernel.graph.freezing.body import Body, HeldValue, declared_value, variable_name
from opkernel.graph.freezing.counterparts import Constants
from opkernel.graph.freezing.frozen_functions import Followed, frozen_graph
from opkernel.graph.functions.calls import calls_functions
from opkernel.graph.functions.function_library import FunctionLibraryDefinition
from opkernel.messages import did_you_mean
from opkernel.proto import NodeDef, TensorProto
from opkernel.types import DataType, PartialTensorShape, tensor_to_proto

if TYPE_CHECKING:
    from opkernel.graph.core.captured_value import CapturedValue
    from opkernel.graph.tracing.concrete_function import ConcreteFunction


TABLE_INITIALIZERS = "table_initializer"
"""The collection of the operations that initialise tables: TensorFlow's GraphKeys.TABLE_INITIALIZERS."""
TABLES = frozenset({"HashTable", "HashTableV2"})
"""Tables that cannot be read before they are initialised."""


def table_initializers(graph: Graph, needed: Collection[Operation]) -> list[Operation]:
    """The operations of a graph that initialise the tables among those needed.

    Raises:
        FailedPreconditionError: nothing in the graph initialises a table.
    """
    found: dict[Operation, None] = {}
    for table in needed:
        if table.type in TABLES:
            initializing = [
                op
                for same in graph.get_operations()
                if same.type == table.type and variable_name(same) == variable_name(table)
                for op in same.outputs[0].consumers()
                if _initializes(op)
            ]
            if not initializing:
                raise table.error(
                    f"Table {table.name!r} ({table.type}) cannot be kept: nothing in the graph "
                    f"initialises it. Make the tensors inputs that are looked up in it",
                    FailedPreconditionError,
                )
            found |= dict.fromkeys(initializing)
    return list(found)


def _initializes(op: Operation) -> bool:
    """Whether a node initialises a table, by itself or in functions that it calls."""
    if op.traits.initializes_table:
        return True
    if not calls_functions(op):
        return False
    library = op.graph.function_library
    functions = library.reachable_definitions([op.message]).values()
    nodes = (node for function in functions for node in function.node_def)
    return any(library.traits(node.op).initializes_table for node in nodes)


_NONE: Mapping[str, Any] = MappingProxyType({})


def freeze_graph(
    graph: Graph,
    outputs: Elements,
    inputs: Tensors = (),
    *,
    values: Mapping[str, Any] = _NONE,
    captured: Mapping[str, Any] = _NONE,
) -> Graph:
    """A new graph with what some outputs need, and constants for variables.

    Variables are VarHandleOp, VariableV2, Variable and AutoReloadVariable, in the graph and in its
    functions. Constants have the names of the variables, what read them is an Identity. Functions that
    take handles become functions that take the values, also those of If, Case, While and
    PartitionedCall; a function that is called with variables of several types becomes several.
    Functions that nothing calls any more are left out.

    Tables are kept, with the operations that initialise them; the collection "table_initializer" has
    these.

    Args:
        graph: The graph; it stays as it is.
        outputs: The tensors and operations that the new graph is for, or a single one.
        inputs: As for `GraphEdit.extract`: tensors that get a Placeholder there.
        values: The values of variables, by their shared names or the names of their nodes.
        captured: The values of placeholders: of handles, as functions of a SavedModel take them, or of
            other tensors.

    Raises:
        FailedPreconditionError: A variable or handle has no value, what the outputs need changes a
            variable, or nothing initialises a table.
        InvalidArgumentError: A value is not of the type or shape of its variable.
        NotFoundError: The graph lacks an output, an input, or a captured placeholder.
        UnimplementedError: A handle may be that of a variable, or another.
    """
    given = {_placeholder(graph, name): value for name, value in captured.items()}

    def read(variables: Sequence[Operation]) -> list[Any]:
        return [_value(op, values) for op in variables]

    frozen = freeze_with(graph, outputs, inputs, read, given)
    _check_handles(frozen, inputs)
    return frozen


def freeze_function(function: ConcreteFunction) -> Graph:
    """A new graph that computes what a function does, with the values that its variables have now.

        signature = model.signatures["serving_default"]
        traced = opkernel.function(signature).get_concrete_function(**signature.inputs)
        opkernel.save_graph(opkernel.freeze_function(traced), "model.pb")

    Placeholders stand for the arguments, under the names of `function.inputs`; results are tensors of the names of
    `function.outputs`.

    Args:
        function: The function; it stays as it is.

    Raises:
        FailedPreconditionError: a variable has no value, or the function changes one.
        UnimplementedError: the function takes a table.
    """
    values = {
        inside.op.name: _value_of(value) for value, inside in function.graph.captured_values.items()
    }
    return freeze_graph(function.graph, function.outputs, captured=values)


def freeze_with(
    graph: Graph,
    outputs: Elements,
    inputs: Tensors,
    read: Callable[[Sequence[Operation]], Sequence[Any]],
    captured: Mapping[Operation, Any] = MappingProxyType({}),
) -> Graph:
    """As `freeze_graph`, with the values that `read` gives of the nodes of variables.

    Args:
        graph: as for `freeze_graph`, as are the outputs and the inputs.
        outputs: the outputs.
        inputs: the inputs.
        read: gives the values of nodes, each of which is in another graph, of the same attrs.
        captured: the values of placeholders of the graph.
    """
    edit = GraphEdit(graph)
    initializers = table_initializers(graph, edit.needed(outputs, inputs))
    extracted = edit.extract([*listed(outputs), *initializers], inputs)
    known = {
        extracted.by_name[op.name]: value
        for op, value in captured.items()
        if op.name in extracted.by_name
    }
    followed = Followed(extracted, {op: _held(op, value) for op, value in known.items()})
    variables = [op for body in followed.bodies() for op in body.variables if op not in known]
    known |= zip(variables, read(variables), strict=True)
    frozen = frozen_graph(followed, lambda op, held: _proto(held, known[op]))
    for op in initializers:
        frozen.add_to_collection(TABLE_INITIALIZERS, frozen.by_name[op.name])
    return frozen


def _placeholder(graph: Graph, name: str) -> Operation:
    op = graph.by_name.get(name.removesuffix(":0"))
    if op is None or op.type not in PLACEHOLDER_OPS:
        names = [op.name for op in graph.get_operations() if op.type in PLACEHOLDER_OPS]
        raise NotFoundError(f"The graph has no placeholder {name!r}{did_you_mean(name, names)}")
    return op


def _value(variable: Operation, values: Mapping[str, Any]) -> Any:
    """The value of a variable.

    Raises:
        FailedPreconditionError: there is none.
    """
    names = [variable_name(variable), variable.name]
    for name in [*names, *(f"{name}:0" for name in names)]:
        if name in values:
            return values[name]
    raise variable.error(
        f"Variable {names[0]!r} cannot become a constant: it has no value among those given"
        f"{did_you_mean(names[0], values)}",
        FailedPreconditionError,
    )


def _value_of(value: CapturedValue) -> Any:
    read = getattr(value, "numpy", None)
    if read is None:
        raise UnimplementedError(
            f"The function takes {value.name!r} from outside, a table or another resource, which a graph cannot keep: "
            f"freeze the SavedModel by a session (opkernel.load_as_session)"
        )
    return read()


def _held(placeholder: Operation, value: Any) -> HeldValue:
    """What takes the place of a placeholder; its own type, if it is not one of a handle."""
    dtype = placeholder.output_types[0].base
    proto = tensor_to_proto(value, None if dtype is DataType.DT_RESOURCE else dtype)
    shape = PartialTensorShape.from_proto(proto.tensor_shape)
    return HeldValue(DataType(proto.dtype), shape, placeholder.name)


def _proto(held: HeldValue, value: Any) -> TensorProto:
    """The value of a variable as a message.

    Raises:
        InvalidArgumentError: it is not of the type or shape of the variable.
    """
    proto = tensor_to_proto(value, held.dtype)
    shape = PartialTensorShape.from_proto(proto.tensor_shape)
    if not held.shape.is_compatible_with(shape):
        raise InvalidArgumentError(
            f"Variable {held.variable!r} has the shape {held.shape}, and its value {shape}"
        )
    return proto


def _check_handles(graph: Graph, inputs: Tensors) -> None:
    """Raise FailedPreconditionError where a placeholder of a handle is left that is no input."""
    wanted = {getattr(tensor, "name", tensor).partition(":")[0] for tensor in listed(inputs)}
    for op in graph.get_operations():
        is_handle = op.type in PLACEHOLDER_OPS and DataType.DT_RESOURCE in op.output_types
        if is_handle and op.name not in wanted:
            raise op.error(
                f"Placeholder {op.name!r} of a handle has no value: give that of its variable in "
                f"`captured`, or make it an input",
                FailedPreconditionError,
            )


class ReadingPart:
    """A part of a graph in which handles have been followed; the graph stays as it is.

    Variables that it assigns to are kept. The others can become constants.

    Args:
        graph: the graph.
        elements: the tensors and operations that are wanted.
        feeds: the tensors that are given; each is the only output of its operation.
        captured: the operations that are given handles of variables, or constants.

    Attributes:
        by_name: the operations that are needed, which are copies.
        variables: the operations that stand for variables which are not assigned to, captured ones among them.
        kept: the names of the others.

    Raises:
        NotFoundError, InvalidArgumentError, ResourceExhaustedError: as `Followed`.
        UnimplementedError: a handle is wanted, or a feed is one of several outputs.
    """

    def __init__(
        self,
        graph: Graph,
        elements: Sequence[Tensor | Operation],
        feeds: Sequence[Tensor],
        captured: Mapping[Operation, HeldValue],
    ) -> None:
        _check(elements, feeds)
        self.kept: set[str] = set()
        while True:
            kept = [op.outputs[0] for op, one in captured.items() if one.variable in self.kept]
            extracted = GraphEdit(graph).extract(elements, [*feeds, *kept])
            self.by_name = by_name = extracted.by_name
            known = {
                by_name[op.name]: value
                for op, value in captured.items()
                if op.name in by_name and value.variable not in self.kept
            }
            self._followed = Followed(extracted, known, self.kept)
            assigned = {name for body in self._followed.bodies() for name in _assigned(body)}
            if not assigned:
                break
            self.kept |= assigned
        self.variables = [op for body in self._followed.bodies() for op in body.variables]

    def is_mostly_read(self, captured: Iterable[HeldValue] = ()) -> bool:
        """Whether at least half of what its variables, and those of captured handles, hold is not assigned to."""
        operations = self.by_name.values()
        declared = [declared_value(op) for op in operations if op.type in VARIABLE_OPS]
        sizes = {one.variable: one.shape.num_elements() or 0 for one in (*captured, *declared)}
        assigned = sum(size for name, size in sizes.items() if name in self.kept)
        return 2 * assigned <= sum(sizes.values())

    def frozen(self, constants: Constants) -> Graph:
        """A graph with constants for the variables, in which nothing acts; to be called once.

        Raises:
            FailedPreconditionError, UnimplementedError, InvalidArgumentError: as `frozen_graph`; or
                something in the graph or its functions has effects.
        """
        graph = frozen_graph(self._followed, constants)
        for op in graph.get_operations():
            _check_effect(graph.function_library, op.message, may_make_handle=True)
        for function in graph.function_library.values():
            for node in function.node_def:
                _check_effect(graph.function_library, node, may_make_handle=False)
        return graph


def _assigned(body: Body) -> Iterator[str]:
    """The names of variables that a body assigns to, of each handle one."""
    for op in body.ops:
        if op.type in ASSIGNMENTS:
            value = body.values.get(op.inputs[0])
            if value is not None:
                yield value.variable


def _check(elements: Iterable[Tensor | Operation], feeds: Iterable[Tensor]) -> None:
    for tensor in elements:
        if isinstance(tensor, Tensor) and tensor.dtype is DataType.DT_RESOURCE:
            raise UnimplementedError(f"{tensor.name!r} is a handle, which stays a handle")
    for tensor in feeds:
        if len(tensor.op.outputs) > 1:
            raise UnimplementedError(f"{tensor.name!r} is fed, and is one of several outputs")


def _check_effect(
    library: FunctionLibraryDefinition, node: NodeDef, *, may_make_handle: bool
) -> None:
    """Raise FailedPreconditionError where a node does more than to see state."""
    op_def, traits = library.look_up_op_def(node.op), library.traits(node.op)
    takes_references = any(one.is_ref for one in op_def.input_arg)
    if not (op_def.is_stateful or takes_references) or node.op in STRUCTURAL_OPS:
        return
    if traits.calls or node.op in library or node.op in LOW_LEVEL_CONTROL_FLOW:
        return
    if traits.only_reads_state or traits.state_of_step or traits.has_no_effect:
        return
    if traits.debug_only or node.op in ASSIGNMENTS:  # their kernels have no state
        return
    makes_handle = not op_def.input_arg and all(
        one.type == DataType.DT_RESOURCE for one in op_def.output_arg
    )
    if not (makes_handle and may_make_handle and op_def.output_arg):
        raise FailedPreconditionError(
            f"Node {node.name!r} ({node.op}) has effects, or state of its own",
            node=node.name,
            op=node.op,
        )
