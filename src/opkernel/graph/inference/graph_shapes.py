"""GraphShapes: what shape inference found out about a whole graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from opkernel.errors import InvalidArgumentError, OpError
from opkernel.graph.core.edges import Edge
from opkernel.graph.core.graph import Graph
from opkernel.graph.core.tensor import Tensor
from opkernel.graph.inference.unknown_shapes import UnknownShapes
from opkernel.graph.inference.whole_graph_refiner import WholeGraphRefiner
from opkernel.opdef.shapes.shape_algebra import ShapeAlgebra
from opkernel.types import PartialTensorShape

if TYPE_CHECKING:
    from opkernel.proto import GraphDef


class GraphShapes(Mapping[Tensor, PartialTensorShape]):
    """The shapes of a graph's tensors, by tensor or by name (`x:0`), in the order of inference.

        shapes = graph.infer_shapes({"x:0": [2, 224, 224, 3]})
        shapes["y:0"]              # a PartialTensorShape
        shapes.why_unknown("y:0")  # ["Where 'w': the data decides"]

    Later changes of the graph do not change the result.
    """

    def __init__(self, graph: Graph, refiner: WholeGraphRefiner) -> None:
        self._graph = graph
        self.refiner = refiner
        self._unknown: UnknownShapes | None = None

    def __getitem__(self, tensor: Tensor | str) -> PartialTensorShape:
        """The known part of a tensor's shape.

        Raises:
            NotFoundError: the graph has no tensor of this name.
            InvalidArgumentError: it has more elements than any tensor can have.
        """
        return self.refiner.shape_of(self._tensor(tensor))

    def get(self, tensor: Any, default: Any = None) -> Any:
        """The known part of a tensor's shape; `default` where the graph has no such tensor."""
        if tensor not in self:
            return default
        return self[tensor]

    def __iter__(self) -> Iterator[Tensor]:
        for op in self.refiner.order:
            yield from op.outputs

    def __len__(self) -> int:
        return sum(len(op.output_types) for op in self.refiner.order)

    def __contains__(self, tensor: object) -> bool:
        try:
            self._tensor(tensor)
        except OpError:
            return False
        return True

    def __repr__(self) -> str:
        return f"<opkernel.GraphShapes: {self.num_known:,} of {len(self):,} fully known>"

    @property
    def num_known(self) -> int:
        """How many of the shapes are fully known."""
        known = ShapeAlgebra.fully_defined
        return sum(known(shape) for op in self.refiner.order for shape in self.refiner.shapes(op))

    def why_unknown(self, tensor: Tensor | str) -> list[str]:
        """Why a shape is not fully known: a phrase for each source, none for a known shape.

        `placeholder 'x' dim 0`, `Where 'w': the data decides`. The first few sources are named.
        """
        if self._unknown is None:
            self._unknown = UnknownShapes(self.refiner)
        found = self._tensor(tensor)
        return self._unknown.sources_of(self.refiner.shape_handle((found.op, found.value_index)))

    def as_graph_def(self) -> GraphDef:
        """The graph as a message, in which every node has its shapes as the attr `_output_shapes`."""
        graph_def = self._graph.as_graph_def()
        for node, op in zip(graph_def.node, self._graph.get_operations(), strict=True):
            shapes = node.attr["_output_shapes"].list
            del shapes.shape[:]
            shapes.shape.extend(map(ShapeAlgebra.shape_handle_to_proto, self.refiner.shapes(op)))
        return graph_def

    def _tensor(self, tensor: object) -> Tensor:
        found = self._graph.as_graph_element(tensor, allow_operation=False)
        assert isinstance(found, Tensor)
        return found


def infer_shapes(
    graph: Graph, inputs: Mapping[Any, Any] | None = None, update: bool = False
) -> GraphShapes:
    """`Graph.infer_shapes`.

    Raises:
        NotFoundError: a name in `inputs` is of no tensor.
        InvalidArgumentError: a given shape is none, or shapes disagree.
    """
    with graph.lock:
        refiner = WholeGraphRefiner(graph, given=_given(graph, inputs or {}))
        refiner.infer_all()
        if update:
            graph.refiner.adopt(refiner)
        return GraphShapes(graph, refiner)


def _given(graph: Graph, inputs: Mapping[Any, Any]) -> dict[Edge, PartialTensorShape]:
    """The shapes that a caller gives, by tensor or name."""
    given = {}
    for key, shape in inputs.items():
        tensor = graph.as_graph_element(key, allow_operation=False)
        assert isinstance(tensor, Tensor)
        try:
            given[tensor.op, tensor.value_index] = PartialTensorShape(shape)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(
                f"What is given for '{tensor.name}' is no shape: {error.message}",
                node=tensor.op.name,
                op=tensor.op.type,
            ) from error
    return given
