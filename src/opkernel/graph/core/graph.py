"""Graph: operations, and the scopes of new ones.

The operations themselves, and what is noted of each, hold `OperationTable`, the base of Graph.

Source: TensorFlow python/framework/ops.py.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from opkernel.errors import InvalidArgumentError, OpError
from opkernel.graph.core.node import (
    NodeRequest,
    capture_site,
    graph_element,
    node_named,
    output_named,
)
from opkernel.graph.core.operation import Operation, as_operation
from opkernel.graph.core.operation_table import OperationTable
from opkernel.graph.core.scopes import DeviceFunction
from opkernel.graph.core.signature import NodeSignature, SignatureResolver
from opkernel.graph.core.tensor import Tensor
from opkernel.graph.functions.function_library import FunctionLibraryDefinition
from opkernel.interrupts import contextmanager, setting
from opkernel.messages import short_repr
from opkernel.opdef import GRAPH_DEF_VERSION, GRAPH_DEF_VERSION_MIN_CONSUMER, OpRegistrationData
from opkernel.proto import FullTypeDef, GraphDef, NodeDef, OpDef, VersionDef
from opkernel.slots import Slot

if TYPE_CHECKING:
    import opkernel.graph as room  # the classes behind the slots, by their public names
    from opkernel.graph.core.captured_value import CapturedValue
    from opkernel.opdef import OpRegistry


DEFAULT_GRAPHS: ContextVar[tuple[Graph, ...]] = ContextVar("default_graphs", default=())
"""The graphs whose blocks this thread is in, innermost last."""

DRAWING: Slot[Callable[[Graph], str]] = Slot("drawing of a graph")
"""Draws a graph, as HTML for notebooks."""

_COPY: Slot[Callable[[Graph, dict[int, Any]], Graph]] = Slot("copy of a graph")
_DEFAULT_SESSION: Slot[Callable[[Graph, Any, Mapping[Any, Any] | None], Any]] = Slot(
    "run in the default session"
)
_EDIT: Slot[Callable[[Graph], AbstractContextManager[room.GraphEdit]]] = Slot("edit of a graph")
_FULL_TYPES: Slot[Callable[[Graph], dict[Operation, FullTypeDef]]] = Slot("full types of a graph")
_NODE_BUILDER: Slot[Callable[[Graph, str, NodeRequest, Sequence[Operation]], Operation]] = Slot(
    "builder of nodes"
)
_PICKLE: Slot[Callable[[Graph], tuple[Any, ...]]] = Slot("pickle of a graph")
_REFINER: Slot[Callable[[Graph], room.ShapeRefiner]] = Slot("shape refiner of a graph")
_SHAPES: Slot[Callable[[Graph, Mapping[Any, Any] | None, bool], room.GraphShapes]] = Slot(
    "shapes of a graph"
)


class Graph(OperationTable[Operation]):
    """A dataflow graph: operations, and the tensors between them.

    Attributes:
        function_library: the functions that its operations may call, by name.
        graph_def_versions: its versions; `producer` tells which ops it may hold.
        assigned_devices: the devices on which a placer has put operations, by their full names.
        control_flow_contexts: the contexts of the operations that were made in a control-flow context.
        building_function: whether it is the body of a function, which takes tensors of the graphs
            around it.
        refiner: the known shapes of its tensors.
        traces: the traces of functions that are traced for it, by function.

    Methods, these attributes and those of `OperationTable` are for everybody to read; only methods change the graph.
    """

    building_function = False

    def __init__(
        self,
        op_registry: OpRegistry | None = None,
        *,
        function_library: FunctionLibraryDefinition | None = None,
    ) -> None:
        """A graph without operations.

        Args:
            op_registry: the ops; the global ones if there is none.
            function_library: the functions, shared with other users of the library; by default a
                new library in front of `op_registry`.
        """
        super().__init__()
        self.function_library = (
            FunctionLibraryDefinition(op_registry) if function_library is None else function_library
        )
        self.graph_def_versions = VersionDef(
            producer=GRAPH_DEF_VERSION, min_consumer=GRAPH_DEF_VERSION_MIN_CONSUMER
        )
        self.assigned_devices: dict[Operation, str] = {}
        self.control_flow_contexts: dict[Operation, Any] = {}
        self.traces: dict[Any, Any] = {}
        self._resolver = SignatureResolver(self.function_library.look_up)
        self.refiner = _REFINER.get()(self)

    # A graph as a collection of its operations, shown and copied.

    def __contains__(self, element: object) -> bool:
        """Whether it has a tensor or operation, given as such or by name."""
        try:
            self.as_graph_element(element)
        except OpError:
            return False
        return True

    def __getitem__(self, name: str) -> Tensor | Operation:
        """The operation of a name, or the tensor of a name such as `node:0`.

        Raises:
            NotFoundError: there is none.
            InvalidArgumentError: `name` is no text.
        """
        if not isinstance(name, str):
            raise InvalidArgumentError(
                f"A graph finds operations and tensors by name, not by {short_repr(name)}: "
                f"graph['x'] is an operation, and graph['x:0'] its first output"
            )
        return self.as_graph_element(name)

    def __repr__(self) -> str:
        parts = [f"{len(self):,} operation{'' if len(self) == 1 else 's'}"]
        if count := len(self.function_library):
            parts.append(f"{count:,} function{'' if count == 1 else 's'}")
        return f"<opkernel.{type(self).__name__} of {', '.join(parts)}>"

    def _repr_html_(self) -> str:
        """The drawing that notebooks show."""
        return DRAWING.get()(self)

    def __copy__(self) -> Graph:
        return copy.deepcopy(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Graph:
        """A graph of its own, over the same ops; a copy of a function's body is a plain Graph."""
        return _COPY.get()(self, memo)

    def __reduce__(self) -> tuple[Any, ...]:
        """In a pickle it is its GraphDef, with the ops that are used and the collections."""
        return _PICKLE.get()(self)

    # Making operations.

    def create_op(
        self,
        op_type: str,
        inputs: Sequence[Any] = (),
        dtypes: Sequence[Any] | None = None,
        input_types: Sequence[Any] | None = None,
        name: str | None = None,
        attrs: Mapping[str, Any] | None = None,
        op_def: OpDef | None = None,
        control_inputs: Iterable[Any] = (),
    ) -> Operation:
        """Make an operation.

        Args:
            op_type: the name of an op, or of a function of the library.
            inputs: the tensors, flat, or one entry for each input argument where a list argument
                is a list. Other values become constants; a list of tensors in the place of one
                tensor is packed.
            dtypes: the types that the outputs should have, to be checked.
            input_types: the types to take the inputs as; by default the types of the tensors.
            name: its name, made unique in the name scope; ending in a slash it is used as it
                stands. The op's name if there is none.
            attrs: Python values or AttrValues; those that follow from the inputs, and those with a
                default, may be left out.
            op_def: the op, if not the registered one.
            control_inputs: operations to run before it, beyond the control dependencies of the
                block.

        Raises:
            NotFoundError: the op is not registered.
            InvalidArgumentError: an input, an attr or a shape breaks a rule of the op.
            FailedPreconditionError: the graph is finalized.
        """
        request = NodeRequest(op_type, list(inputs), dict(attrs or {}), op_def, input_types, dtypes)
        return self.create_node(name or op_type, request, control_inputs)

    def create_node(
        self, name: str, request: NodeRequest, control_inputs: Iterable[Any] = ()
    ) -> Operation:
        """Make the operation that is asked for; `create_op` takes the request apart."""
        with self.lock:
            self.check_not_finalized()
            full_name = self._new_name(name)
            controls = [as_operation(one) for one in control_inputs]
            op = _NODE_BUILDER.get()(self, full_name, request, controls)
            op.definition_site = capture_site()
            with ExitStack() as colocations:
                for source in op.reference_sources() if request.beside_refs else ():
                    colocations.enter_context(self.colocate_with(source))
                self.scopes.apply_to(op)
            self.refiner.add_node(op)
            self.append([op])
            self.scopes.note_made(op)
            self.enter_context(op)
            return op

    # Scopes for new operations.

    def device(
        self, device: str | DeviceFunction[Operation] | None
    ) -> AbstractContextManager[None]:
        """Put new operations on a device; scopes inside add to the name and override its parts."""
        return self.scopes.on_device(device)

    def control_dependencies(
        self, control_inputs: Iterable[Any] | None
    ) -> AbstractContextManager[None]:
        """Make new operations run after others; None drops the control inputs of outer blocks."""
        if control_inputs is None:
            return self.scopes.after(None)
        ops = [as_operation(element) for element in control_inputs]
        for op in ops:
            self.check_own(op, "control dependency")
        return self.scopes.after(ops)

    def colocate_with(
        self, op: Any | None, ignore_existing: bool = False
    ) -> AbstractContextManager[None]:
        """Put new operations on the device that `op` will get."""
        target = None if op is None else as_operation(op)
        return self.scopes.beside(target, ignore_existing=ignore_existing)

    def gradient_override_map(self, op_type_map: Mapping[str, str]) -> AbstractContextManager[None]:
        """Replace the gradient functions of new operations, by op.

        Args:
            op_type_map: from names of ops to names of registered gradient functions.
        """
        return self.scopes.with_gradients(op_type_map)

    def _get_control_flow_context(self) -> Any:
        """The control-flow context of new operations of this thread; None for none."""
        return self.scopes.control_flow_context

    def _set_control_flow_context(self, context: Any) -> None:
        """Put new operations of this thread into a context, or into none."""
        self.scopes.control_flow_context = context

    _control_flow_context = property(_get_control_flow_context, _set_control_flow_context)

    def enter_context(self, op: Operation) -> None:
        """Put a new operation into the control-flow context, if there is one.

        Code that builds control flow of TensorFlow 1 by hand sets the contexts, whose method `AddOp` gets each
        operation made in them. Nothing else reads them: `control_flow_info` finds frames from the edges.
        """
        context = self.scopes.control_flow_context
        if context is not None:
            self.control_flow_contexts[op] = context
            context.AddOp(op)

    @contextmanager
    def as_default(self) -> Iterator[Graph]:
        """Make it the default graph of this thread inside the block."""
        with setting({DEFAULT_GRAPHS: (*DEFAULT_GRAPHS.get(), self)}):
            yield self

    def empty(self) -> Graph:
        """An empty graph of its kind that may call the same functions."""
        return type(self)(function_library=self.function_library)

    # Changing operations.

    def edit(self) -> AbstractContextManager[room.GraphEdit]:
        """Change operations that are there: `with graph.edit() as edit:`, all changes or none.

        `edit` is a GraphEdit. The graph is the default graph in the block. At its end operations are
        put in order again, and shapes are inferred anew when they are asked for. If the block raises,
        the graph is restored.

        Raises:
            FailedPreconditionError: the graph is finalized.
            InvalidArgumentError: at the end of the block, operations depend on each other in a cycle;
                the message names them.
        """
        return _EDIT.get()(self)

    # Finding elements.

    @property
    def op_registry(self) -> OpRegistry:
        """The ops that are not functions of the library."""
        return self.function_library.op_registry

    def get_operation_by_name(self, name: str) -> Operation:
        """The operation of a name.

        Raises:
            NotFoundError: there is none.
        """
        element = self.as_graph_element(name, allow_tensor=False)
        assert isinstance(element, Operation)
        return element

    def get_tensor_by_name(self, name: str) -> Tensor:
        """The tensor of a name, `node:0`.

        Raises:
            NotFoundError: there is none.
        """
        element = self.as_graph_element(name, allow_operation=False)
        assert isinstance(element, Tensor)
        return element

    def as_graph_element(
        self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True
    ) -> Tensor | Operation:
        """The tensor or operation that `obj` is or names.

        Args:
            obj: a name (`node:0` of a tensor, `node` of an operation), a Tensor, an Operation, or
                an object with a method `_as_graph_element`.
            allow_tensor: whether a tensor may be meant.
            allow_operation: whether an operation may be meant.

        Raises:
            NotFoundError: the graph has no element of the name.
            InvalidArgumentError: it is not of a kind that is allowed, or of another graph.
        """
        element = graph_element(obj)
        if isinstance(element, str):
            if (":" in element and allow_tensor) or not allow_operation:
                op, index = output_named(self.by_name, element)
                return op.outputs[index]
            return node_named(self.by_name, element)
        if isinstance(element, Tensor) and allow_tensor:
            self.check_own(element.op, "graph element")
            return element
        if isinstance(element, Operation) and allow_operation:
            self.check_own(element, "graph element")
            return element
        wanted = " or ".join(["Tensor"] * allow_tensor + ["Operation"] * allow_operation)
        raise InvalidArgumentError(f"Can not convert a {type(obj).__name__} into a {wanted}.")

    # The whole graph.

    def infer_full_types(self) -> None:
        """Infer the full types of all operations; they and the exported nodes carry them then.

        Raises:
            InvalidArgumentError: types contradict each other; the message names the node.
            UnimplementedError: an op takes its types from a function that it calls.
            FailedPreconditionError: the graph is finalized.
        """
        with self.lock:
            self.check_not_finalized()
            for op, full_type in _FULL_TYPES.get()(self).items():
                op.set_full_type(full_type)

    def _run(self, fetches: Any, feed_dict: Mapping[Any, Any] | None, session: Any | None) -> Any:
        """The values of `fetches` from `session`, or from the default session.

        Raises:
            FailedPreconditionError: there is neither.
        """
        if session is not None:
            return session.run(fetches, feed_dict)
        return _DEFAULT_SESSION.get()(self, fetches, feed_dict)

    def as_graph_def(self, add_shapes: bool = False) -> GraphDef:
        """The graph as a message.

        Args:
            add_shapes: give each node an attr `_output_shapes` with the known shapes of its
                outputs.
        """
        with self.lock:
            graph_def = GraphDef(
                versions=self.graph_def_versions, library=self.function_library.to_proto()
            )
            graph_def.node.extend([op.node_def for op in self._operations])
            if add_shapes:
                for node, op in zip(graph_def.node, self._operations, strict=True):
                    shapes = node.attr["_output_shapes"].list
                    del shapes.shape[:]
                    shapes.shape.extend([tensor.shape.to_proto() for tensor in op.outputs])
            return graph_def

    def infer_shapes(
        self, inputs: Mapping[Any, Any] | None = None, *, update: bool = False
    ) -> room.GraphShapes:
        """Infer the shapes of the whole graph, through its loops and functions.

        Args:
            inputs: shapes of tensors, by tensor or by name (`x:0`); they are merged into the known
                shapes.
            update: let the tensors of the graph keep the inferred shapes. Without it the graph
                stays as it is.

        Returns:
            The GraphShapes.

        Raises:
            NotFoundError: a name in `inputs` is of no tensor.
            InvalidArgumentError: a given shape is none, or shapes disagree.
        """
        return _SHAPES.get()(self, inputs, update)

    # For code that makes and changes operations: importers, passes, gradients.

    def resolve(
        self, node: NodeDef, num_inputs: int, registration: OpRegistrationData | None = None
    ) -> NodeSignature:
        """The signature of a node with `num_inputs` data inputs; missing defaults are added to it.

        Raises:
            NotFoundError: its op is not registered.
            InvalidArgumentError: it breaks a rule of its op.
        """
        registration = registration or self.function_library.look_up(node.op)
        return self._resolver.resolve(node, num_inputs, registration)

    def as_own(self, tensor: Tensor) -> Tensor:
        """The tensor of this graph that stands for a tensor which is used in it."""
        return tensor

    def tensor_of(self, value: CapturedValue) -> Tensor:
        """The tensor that stands for a Python object, in the body of a function.

        Raises:
            InvalidArgumentError: this is the graph of sessions, which have resources of their own.
        """
        raise InvalidArgumentError(
            f"{value.name!r} cannot be used in a graph for sessions, which have variables of their own. "
            f"Use it in opkernel.function, or make the graph's variable with raw_ops.VarHandleOp"
        )
