"""SessionVariable: a variable of a graph, with the value that it has in a session.

Source: TensorFlow python/ops/variables.py, core/framework/variable.proto.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

from opkernel.errors import DataLossError, OpError
from opkernel.graph import Graph, Operation, Tensor, placeholder
from opkernel.proto import DecodeError, MetaGraphDef, VariableDef
from opkernel.runtime import Session
from opkernel.types import DataType, PartialTensorShape

_TRAINABLE = "trainable_variables"
_COLLECTIONS = ("variables", "local_variables", "model_variables", _TRAINABLE)
_VARIABLE_OPS = frozenset({"VarHandleOp", "VariableV2", "Variable"})


class SessionVariable:
    """A variable of a graph.

    Attributes:
        name: Its name; that of its node with the number of the output, as `w:0`, where it comes from a
            collection.
        trainable: Whether training changes it.
    """

    def __init__(
        self, operation: Operation, session: Callable[[], Session], name: str, *, trainable: bool
    ) -> None:
        self.name = name
        self.trainable = trainable
        self._operation = operation
        self._session = session

    @property
    def dtype(self) -> DataType:
        """The type of its elements."""
        return DataType(self._operation.attr["dtype"].type)

    @property
    def shape(self) -> PartialTensorShape:
        """Its shape, of which parts may be unknown."""
        return PartialTensorShape.from_proto(self._operation.attr["shape"].shape)

    def numpy(self) -> Any:
        """The value that it has now, as an array of its own.

        Raises:
            FailedPreconditionError: it has none yet.
        """
        return self._session().run(self._read)

    def assign(self, value: Any) -> None:
        """Give it a value.

        Raises:
            InvalidArgumentError: the value has another type or shape.
        """
        assign, given = self._assign
        self._session().run(assign, {given: value})

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Its value, for NumPy."""
        value = self.numpy()
        return value if dtype is None else value.astype(dtype)

    def __repr__(self) -> str:
        return f"<opkernel.SessionVariable {self.name!r} {self.dtype.tf_name}{self.shape}>"

    @cached_property
    def _read(self) -> Tensor:
        output = self._operation.outputs[0]
        if output.dtype is not DataType.DT_RESOURCE:
            return output
        return self._node("ReadVariableOp", [output]).outputs[0]

    @cached_property
    def _assign(self) -> tuple[Operation, Tensor]:
        output = self._operation.outputs[0]
        is_resource = output.dtype is DataType.DT_RESOURCE
        graph = self._operation.graph
        with graph.as_default(), graph.control_dependencies(None):
            given = placeholder(self.dtype, self.shape, name=f"{self._operation.name}/given")
        op_type = "AssignVariableOp" if is_resource else "Assign"
        return self._node(op_type, [output, given]), given

    def _node(self, op_type: str, inputs: list[Tensor]) -> Operation:
        graph = self._operation.graph
        attrs = {"dtype": self.dtype} if inputs[0].dtype is DataType.DT_RESOURCE else {}
        with graph.lock, graph.control_dependencies(None), graph.device(self._operation.device):
            return graph.create_op(
                op_type, inputs, name=f"{self._operation.name}/{op_type}", attrs=attrs
            )


def session_variables(
    graph: Graph, meta_graph: MetaGraphDef, session: Callable[[], Session]
) -> list[SessionVariable]:
    """The variables that the collections of a MetaGraph list; without such, those of the graph.

    Raises:
        DataLossError: an entry of a collection is damaged.
    """
    listed = [*_listed(graph, meta_graph)]
    found: dict[str, SessionVariable] = {}
    for operation, name, is_trainable in listed or _of_graph(graph, meta_graph):
        variable = found.setdefault(
            operation.name, SessionVariable(operation, session, name, trainable=is_trainable)
        )
        variable.trainable |= is_trainable
    return [*found.values()]


def _listed(graph: Graph, meta_graph: MetaGraphDef) -> Iterable[tuple[Operation, str, bool]]:
    for collection in _COLLECTIONS:
        for data in meta_graph.collection_def[collection].bytes_list.value:
            try:
                definition = VariableDef.FromString(data)
            except DecodeError as error:
                raise DataLossError(f"Collection {collection!r} is damaged") from error
            operation = _operation(graph, definition.variable_name)
            if operation is not None:
                is_trainable = collection == _TRAINABLE and definition.trainable
                yield operation, definition.variable_name, is_trainable


def _operation(graph: Graph, name: str) -> Operation | None:
    """The operation that makes a variable, by the name of its handle or reference."""
    try:
        element = graph.as_graph_element(name)
    except (OpError, ValueError, TypeError):
        return None
    operation = element.op if isinstance(element, Tensor) else element
    return operation if operation.type in _VARIABLE_OPS else None


def _of_graph(graph: Graph, meta_graph: MetaGraphDef) -> Iterable[tuple[Operation, str, bool]]:
    """The variables of a graph without collections: what TF2 writes says in its objects what is trained."""
    trained = {
        node.variable.name for node in meta_graph.object_graph_def.nodes if node.variable.trainable
    }
    for operation in graph.get_operations():
        if operation.type in _VARIABLE_OPS:
            shared = operation.attr["shared_name"].s.decode(errors="replace")
            name = shared or operation.name
            yield operation, name, name in trained
