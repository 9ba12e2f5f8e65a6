"""ShapeRefiner: what is known of the shapes in a graph before it runs.

Shapes are worked out node by node, a node's inputs first: at once for nodes that are made, for
imported ones when a shape is first asked for. The back edge of a loop counts as unknown.

State: the shape handles of a node stand in `Operation._shapes`; `_handle_data` holds what the
resources and variants among the outputs hold; `_active` are the nodes that wait for their inputs.

Source: TensorFlow core/common_runtime/shape_refiner.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opkernel.errors import InvalidArgumentError, OpError
from opkernel.graph.constant_values import ConstantValues
from opkernel.graph.operation import Operation
from opkernel.graph.structural_ops import MERGE_OPS, NEXT_ITERATION_OPS
from opkernel.graph.tensor import Tensor
from opkernel.opdef import InferenceContext, ShapeHandle, run_shape_fn
from opkernel.types import PartialTensorShape

if TYPE_CHECKING:
    from opkernel.graph.graph import Graph
    from opkernel.opdef import ShapeAndType

__all__ = ["ShapeRefiner"]

_OUTPUT_SHAPES = "_output_shapes"


class ShapeRefiner:
    """Infers the shapes of a graph's tensors. Not safe under threads by itself."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._handle_data: dict[tuple[Operation, int], list[ShapeAndType]] = {}
        self._values = ConstantValues(self.handle_of)
        self._active: set[Operation] = set()

    def add_node(self, op: Operation) -> None:
        """Infer the shapes of a node's outputs, and before them those of all that it depends on.

        Raises:
            InvalidArgumentError: the shapes of a node break a rule of its op.
        """
        if op in self._active:
            return
        stack, entered = [op], []
        try:
            while stack:
                top = stack[-1]
                if top._shapes is None and top not in self._active:
                    self._active.add(top)
                    entered.append(top)
                    stack += self._waiting_for(top)
                    if stack[-1] is not top:
                        continue
                stack.pop()
                if top._shapes is None:
                    self._infer(top)
        finally:
            self._active.difference_update(entered)

    def handle_of(self, tensor: Tensor) -> ShapeHandle:
        """The shape handle of a tensor; a new one of unknown shape inside a cycle."""
        self.add_node(tensor.op)
        return _known_shape(tensor.op, tensor.value_index)

    def shape_of(self, tensor: Tensor) -> PartialTensorShape:
        """What is known of the shape of a tensor."""
        dims = self.handle_of(tensor).dims
        return PartialTensorShape(None if dims is None else [dim.value for dim in dims])

    def set_shape(self, tensor: Tensor, shape: Any) -> None:
        """Add what the caller knows of a shape.

        Raises:
            InvalidArgumentError: it disagrees with what is known.
        """
        known = self.handle_of(tensor)
        context = _context_for_merging(tensor.op)
        given = context.make_shape_from_partial_shape(PartialTensorShape(shape))
        shapes = list(tensor.op._shapes or ())
        shapes[tensor.value_index] = context.merge(known, given)
        tensor.op._shapes = tuple(shapes)

    def _waiting_for(self, op: Operation) -> list[Operation]:
        """The producers of its inputs whose shapes are to be worked out first."""
        waiting = [s for s in op._edges[::2] if s._shapes is None and s not in self._active]
        if op.type in MERGE_OPS:
            return [source for source in waiting if source.type not in NEXT_ITERATION_OPS]
        return waiting

    def _infer(self, op: Operation) -> None:
        registration = op._signature.registration
        count = len(op._signature.output_types)
        if registration is None or registration.shape_inference_fn is None:
            op._shapes = tuple([ShapeHandle() for _ in range(count)])
            return
        context = InferenceContext(
            registration.op_def,
            op.node_def,
            [_known_shape(source, index) for source, index in _edges(op)],
            handle_shapes=self._input_handle_data(op),
            graph_def_version=self._graph.graph_def_versions.producer,
        )
        self._run(op, context)
        shapes = [context.output(i) or ShapeHandle() for i in range(count)]
        op._shapes = tuple(_merge_given_shapes(op, context, shapes))
        for index in range(count):
            data = context.output_handle_shapes_and_types(index)
            if data is not None:
                self._handle_data[op, index] = data

    def _run(self, op: Operation, context: InferenceContext) -> None:
        """Run the shape function, again for as long as it asks for constants that are new to it."""
        registration = op._signature.registration
        assert registration is not None
        asked: set[tuple[str, int]] = set()
        while True:
            try:
                run_shape_fn(registration, context)
            except OpError:
                if not self._provide_constants(op, context, asked):
                    raise
                continue
            except (ValueError, TypeError, LookupError, ArithmeticError) as error:
                raise InvalidArgumentError(
                    f"The shape function of {op.type} failed: {error!r} (node '{op.name}')",
                    node=op.name,
                    op=op.type,
                ) from error
            if not self._provide_constants(op, context, asked):
                return

    def _provide_constants(
        self, op: Operation, context: InferenceContext, asked: set[tuple[str, int]]
    ) -> bool:
        """Give the context the constants that it asked for; whether any of them is known."""
        values: list[Any] = [None] * context.num_inputs()
        shapes: list[Any] = [None] * context.num_inputs()
        learned = False
        for index, (source, output) in enumerate(_edges(op)):
            if source._shapes is None:
                continue
            tensor = source.outputs[output]
            if context.requested_input_tensor(index):
                values[index] = self._values.value_of(tensor)
                learned |= values[index] is not None and ("value", index) not in asked
                asked.add(("value", index))
            if context.requested_input_tensor_as_partial_shape(index):
                shapes[index] = self._values.as_partial_shape(tensor)
                learned |= shapes[index] is not None and ("shape", index) not in asked
                asked.add(("shape", index))
        context.set_input_tensors(values)
        context.set_input_tensors_as_shapes(shapes)
        return learned

    def _input_handle_data(self, op: Operation) -> list[Any]:
        if not self._handle_data:
            return []
        return [self._handle_data.get(edge) for edge in _edges(op)]


def _edges(op: Operation) -> list[tuple[Operation, int]]:
    edges = op._edges
    return [(edges[i], edges[i + 1]) for i in range(0, len(edges), 2)]


def _known_shape(source: Operation, index: int) -> ShapeHandle:
    return ShapeHandle() if source._shapes is None else source._shapes[index]


def _context_for_merging(op: Operation) -> InferenceContext:
    inputs = [ShapeHandle() for _ in range(len(op._edges) // 2)]
    return InferenceContext(op.op_def, op.node_def, inputs)


def _merge_given_shapes(
    op: Operation, context: InferenceContext, shapes: list[ShapeHandle]
) -> list[ShapeHandle]:
    """The shapes with those of the attr `_output_shapes` merged into them, where there is one."""
    if _OUTPUT_SHAPES not in op._node_def.attr:
        return shapes
    given = op._node_def.attr[_OUTPUT_SHAPES].list.shape
    merged = list(shapes)
    for index, proto in enumerate(given[: len(shapes)]):
        try:
            shape = context.make_shape_from_shape_proto(proto)
            merged[index] = context.merge(shapes[index], shape)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(
                f"Node '{op.name}' has an _output_shapes attribute inconsistent with the GraphDef "
                f"for output #{index}: {error.message}",
                node=op.name,
                op=op.type,
            ) from error
    return merged
