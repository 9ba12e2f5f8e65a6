"""GraphShapes: what shape inference found out about a whole graph, and where unknown dimensions come from.

Each unknown dimension first appears at some operation. The operation may be the source itself: a
placeholder, an op whose data decides, a loop. Otherwise the dimension follows from unknown dimensions or
values of the operation's inputs, and has their sources.

State: `_sources` of UnknownShapes maps the unknown handles met so far to the phrases for their sources. The order of
inference puts the inputs of an operation before the operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from opkernel.errors import InvalidArgumentError, OpError
from opkernel.graph.core.edges import Edge, edges_of, is_head_of_loop
from opkernel.graph.core.graph import Graph
from opkernel.graph.core.operation import Operation
from opkernel.graph.core.structural_ops import ARG_OPS, INPUT_OPS, MERGE_OPS
from opkernel.graph.core.tensor import Tensor
from opkernel.graph.inference.constant_values import is_foldable
from opkernel.graph.inference.whole_graph_refiner import WholeGraphRefiner
from opkernel.opdef import DimensionHandle, InferenceContext, ShapeHandle, unknown_shape
from opkernel.opdef.shapes.shape_algebra import ShapeAlgebra
from opkernel.types import PartialTensorShape

if TYPE_CHECKING:
    from opkernel.proto import GraphDef


_MAX_SOURCES = 3
_MAX_TRIED = 8
_MAX_VALUES_FOLLOWED = 200
_TRIED_SIZE = 12
"""A size that stands for unknown ones: most strides, groups and blocks divide it."""
_TRIED_RANKS = (2, 4, 3, 1, 0)

_PLACEHOLDERS = {
    **dict.fromkeys(INPUT_OPS, "placeholder"),
    **dict.fromkeys(ARG_OPS, "argument"),
}

Unknown: TypeAlias = DimensionHandle | ShapeHandle
"""An unknown dimension, or a shape of unknown rank."""


class _Output(NamedTuple):
    """A dimension of an output, or with no axis its rank."""

    op: Operation
    position: int
    axis: int | None


class UnknownShapes:
    """The sources of all unknown dimensions of a graph."""

    def __init__(self, refiner: WholeGraphRefiner) -> None:
        self._refiner = refiner
        self._sources: dict[Unknown, tuple[str, ...]] = {}
        for op in refiner.order:
            for index, shape in enumerate(refiner.shapes(op)):
                for axis, unknown in _unknowns(shape):
                    if unknown not in self._sources:
                        self._sources[unknown] = self._find(op, index, axis)
                for unknown in self._unknowns_held([(op, index)]):
                    if unknown not in self._sources:
                        inherited = self._joined(self._unknowns_held(edges_of(op)))
                        phrase = f"{op.type} '{op.name}' does not say what it holds"
                        self._sources[unknown] = inherited or (phrase,)

    def sources_of(self, shape: ShapeHandle) -> list[str]:
        """The phrases for the sources of the unknown part of a shape."""
        return list(self._joined(unknown for _, unknown in _unknowns(shape)))

    def _joined(self, unknowns: Iterable[Unknown]) -> tuple[str, ...]:
        """The sources of several unknowns, a few of them."""
        phrases = dict.fromkeys(
            [phrase for one in unknowns for phrase in self._sources.get(one, ())]
        )
        return tuple(phrases)[:_MAX_SOURCES]

    def _find(self, op: Operation, index: int, axis: int | None) -> tuple[str, ...]:
        """The sources of an unknown that first appears at an output of an operation."""
        registration = op.signature.registration
        where = "" if axis is None else f" dim {axis}"
        if op.type in _PLACEHOLDERS:
            return (f"{_PLACEHOLDERS[op.type]} '{op.name}'{where}",)
        if registration is None:
            return (f"op {op.type} is not registered (node '{op.name}')",)
        inputs = [self._refiner.shape_handle(edge) for edge in edges_of(op)]
        traits = op.traits
        if op.type in MERGE_OPS or traits.chooses_function or traits.calls == "while":
            return self._find_at_join(op, index, axis, inputs)
        if registration.is_function_op or traits.calls == "function":
            of_inputs = self._joined(unknown for s in inputs for _, unknown in _unknowns(s))
            return of_inputs or (f"the function that {op.type} '{op.name}' calls",)
        if registration.shape_inference_fn in (None, unknown_shape):
            return (f"op {op.type} has no shape function that tells (node '{op.name}')",)
        causes = self._causes(_Output(op, index, axis))
        causes = causes or self._joined(self._unknowns_held(edges_of(op)))
        return causes or (f"{op.type} '{op.name}': the data decides",)

    def _unknowns_held(self, edges: Iterable[Edge]) -> list[Unknown]:
        """The unknowns of what resources and variants hold."""
        held = [entry for edge in edges for entry in self._refiner.held_by(edge) or ()]
        return [unknown for entry in held for _, unknown in _unknowns(entry.shape)]

    def _find_at_join(
        self, op: Operation, index: int, axis: int | None, inputs: Sequence[ShapeHandle]
    ) -> tuple[str, ...]:
        """The sources where turns of a loop or branches lead to different shapes."""
        is_while, chooses = op.traits.calls == "while", op.traits.chooses_function
        if is_while:
            inputs = inputs[index : index + 1]
        if chooses:
            inherited = self._joined(unknown for s in inputs for _, unknown in _unknowns(s))
        else:
            inherited = self._joined(u for s in inputs for at, u in _unknowns(s) if at == axis)
        is_loop = is_while or is_head_of_loop(op)
        reason = "the loop changes it" if is_loop else "its branches differ"
        return inherited or (f"{op.type} '{op.name}': {reason}",)

    def _causes(self, output: _Output) -> tuple[str, ...]:
        """The sources of what makes an output unknown: of dimensions of inputs, or of values."""
        context = self._refiner.context_of(output.op)
        shapes = [context.input(i) for i in range(context.num_inputs())]
        unknowns = list(dict.fromkeys([u for shape in shapes for _, u in _unknowns(shape)]))
        would_be_known = self._is_known_if(output, shapes, unknowns)
        if would_be_known:
            return self._joined(self._decisive(output, shapes, unknowns))
        phrases = self._sources_of_values(output.op, context)
        if would_be_known is None:
            phrases = dict.fromkeys([*self._joined(unknowns), *phrases])
        return tuple(phrases)[:_MAX_SOURCES]

    def _decisive(
        self, output: _Output, shapes: Sequence[ShapeHandle], unknowns: Sequence[Unknown]
    ) -> Sequence[Unknown]:
        """The inputs that an output lacks though all others are known; or else all inputs."""
        if not 1 < len(unknowns) <= _MAX_TRIED:
            return unknowns
        decisive = []
        for one in unknowns:
            others = [unknown for unknown in unknowns if unknown is not one]
            if not self._is_known_if(output, shapes, others):
                decisive.append(one)
        return decisive or unknowns

    def _is_known_if(
        self, output: _Output, shapes: Sequence[ShapeHandle], known: Sequence[Unknown]
    ) -> bool | None:
        """Whether an output would be known if some unknowns were; None where that cannot be told."""
        told = None
        for rank in _TRIED_RANKS:
            context = self._refiner.context_of(output.op)
            for i, shape in enumerate(shapes):
                context.set_input(i, _with_known(shape, known, rank))
            try:
                self._refiner.run_shape_function(output.op, context)
            except OpError:
                continue
            told = _is_known(context.output(output.position), output.axis)
            if told or not any(isinstance(one, ShapeHandle) for one in known):
                return told
        return told

    def _sources_of_values(self, op: Operation, context: InferenceContext) -> dict[str, None]:
        """The sources of the values that a shape function asks for and that are not known."""
        try:
            self._refiner.run_shape_function(op, context)
        except OpError:
            return {}
        edges = edges_of(op)
        asked = [edges[index] for index in sorted({index for index, _ in context.requests})]
        return dict.fromkeys([phrase for edge in asked for phrase in self._sources_of_value(edge)])

    def _sources_of_value(self, edge: Edge) -> dict[str, None]:
        """The phrases for what keeps a value from being known."""
        phrases: dict[str, None] = {}
        seen, waiting = {edge}, [edge]
        while waiting and len(seen) <= _MAX_VALUES_FOLLOWED:
            source = waiting.pop()
            found = self._source_of_value_at(source)
            phrases.update(dict.fromkeys(found or ()))
            if found is None:
                new = [one for one in edges_of(source[0]) if one not in seen]
                seen.update(new)
                waiting += reversed(new)
        return phrases

    def _source_of_value_at(self, edge: Edge) -> Sequence[str] | None:
        """The phrases for an unknown value; none where it is known, None where its inputs tell."""
        op, index = edge
        values = self._refiner.values
        if values.value_of(edge) is not None:
            return ()
        if op.type in _PLACEHOLDERS:
            return (f"the value of {_PLACEHOLDERS[op.type]} '{op.name}'",)
        if op.traits.reads_shapes_only:
            edges = edges_of(op)
            asked = edges[index : index + 1] if len(edges) == len(op.output_types) else edges
            shapes = [self._refiner.shape_handle(one) for one in asked]
            return self._joined(unknown for s in shapes for _, unknown in _unknowns(s))
        partial = values.partial_value_of(edge)
        elements = [] if partial is None else [e for e in partial.flat if not isinstance(e, int)]
        if elements and all(element in self._sources for element in elements):
            return self._joined(elements)
        if not is_foldable(op) or all(values.value_of(one) is not None for one in edges_of(op)):
            return (f"the value of '{op.name}:{index}' ({op.type})",)
        return None


def _unknowns(shape: ShapeHandle) -> Iterator[tuple[int | None, Unknown]]:
    """The unknown dimensions with their axes; or the shape itself, if its rank is unknown."""
    if shape.dims is None:
        yield None, shape
        return
    for axis, dim in enumerate(shape.dims):
        if dim.value < 0:
            yield axis, dim


def _with_known(shape: ShapeHandle, known: Sequence[Unknown], rank: int) -> ShapeHandle:
    """The shape with a made-up size for some unknowns, and a made-up rank for unknown ranks."""
    if shape.dims is None:
        if not any(shape is one for one in known):
            return shape
        return ShapeHandle(tuple([DimensionHandle(_TRIED_SIZE) for _ in range(rank)]))
    tried = {one: DimensionHandle(_TRIED_SIZE) for one in known}
    return ShapeHandle(tuple([tried.get(dim, dim) for dim in shape.dims]))


def _is_known(shape: ShapeHandle | None, axis: int | None) -> bool:
    if shape is None or shape.dims is None:
        return False
    return axis is None or axis >= len(shape.dims) or shape.dims[axis].value >= 0


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
            raise tensor.op.error(
                f"What is given for '{tensor.name}' is no shape: {error.message}"
            ) from error
    return given
