"""ShapeRefiner: the shapes in a graph that are known before it runs.

It works out shapes node by node, inputs first: for a new node at once, for an imported node when
somebody first asks for a shape. It follows calls of functions into the bodies. The back edge of a loop
counts as unknown; `WholeGraphRefiner` does better.

State: `_shapes` holds the shape handles of the outputs of each inferred node, `_held` the contents of
resources and variants among the outputs, `_items` the facts that hold of all tensors of a list. The
outputs of `_defined` are known from outside. `_active` holds the nodes that wait for their inputs.
`_asked` holds the constants that the shape function of an op asked for before: the next node of the op
gets them at once.

Some shapes are only stated: by `set_shape`, by the attr `_output_shapes` of nodes, or by a shape function
that doubts them. Nobody checks such a statement when the graph runs, so passes must not rely on it.

Source: TensorFlow core/common_runtime/shape_refiner.cc.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from opkernel.device.budget import check_time
from opkernel.errors import InvalidArgumentError, OpError
from opkernel.graph.core.edges import Edge, edges_of, reached
from opkernel.graph.core.operation import Operation
from opkernel.graph.core.structural_ops import MERGE_OPS, NEXT_ITERATION_OPS
from opkernel.graph.inference.constant_values import ConstantValues
from opkernel.graph.inference.tensor_facts import TensorFacts
from opkernel.opdef import InferenceContext, ShapeHandle, UnsetOutputError, run_shape_fn
from opkernel.opdef.shapes.shape_algebra import ShapeAlgebra
from opkernel.proto import TensorShapeProto
from opkernel.types import PartialTensorShape

if TYPE_CHECKING:
    from opkernel.graph.core.graph import Graph
    from opkernel.graph.core.tensor import Tensor
    from opkernel.graph.inference.function_shapes import FunctionShapes
    from opkernel.opdef import ShapeAndType

Requests: TypeAlias = AbstractSet[tuple[int, bool]]
"""Inputs whose values a shape function asks for, and whether as shapes."""

_OUTPUT_SHAPES = "_output_shapes"
_NO_CALL_INFERENCE = "_disable_call_shape_inference"


class ShapeRefiner:
    """Infers the shapes of a graph's tensors. Not safe under threads by itself.

    Attributes:
        believes: whether shapes count that are only stated.
        was_told: whether such a shape is among what is known.
    """

    def __init__(self, graph: Graph, functions: FunctionShapes | None = None) -> None:
        """`functions` are those whose inferred bodies are shared; new ones if there are none."""
        self.values = ConstantValues(self.shape_handle)
        self.believes = True
        self.was_told = False
        self._graph = graph
        self._given_functions = functions
        self._shapes: dict[Operation, tuple[ShapeHandle, ...]] = {}
        self._held: dict[Edge, Sequence[ShapeAndType]] = {}
        self._items: dict[Edge, TensorFacts] = {}
        self._defined: set[Operation] = set()
        self._active: set[Operation] = set()
        self._asked: dict[str, Requests] = {}

    @cached_property
    def _functions(self) -> FunctionShapes:
        from opkernel.graph.inference.function_shapes import FunctionShapes  # where there are calls

        return self._given_functions or FunctionShapes(self._refiner_of_body)

    def add_node(self, op: Operation) -> None:
        """Infer the shapes of a node's outputs, after those of all nodes that it depends on.

        Raises:
            InvalidArgumentError: the shapes of a node break a rule of its op.
        """
        if op in self._active:
            return
        shapes, active = self._shapes, self._active
        stack, entered = [op], []
        try:
            while stack:
                top = stack[-1]
                if top not in shapes and top not in active:
                    entered.append(top)
                    active.add(top)
                    stack += self._waiting_for(top)
                    if stack[-1] is not top:
                        continue
                stack.pop()
                if top not in shapes:
                    self._infer(top)
        finally:
            active.difference_update(entered)

    def shape_handle(self, edge: Edge) -> ShapeHandle:
        """The shape handle of a tensor; a new one of unknown shape inside a cycle."""
        if edge[0] not in self._shapes:
            self.add_node(edge[0])
        return self._known_shape(edge)

    def shapes(self, op: Operation) -> tuple[ShapeHandle, ...]:
        """The shape handles of the outputs of an operation."""
        self.add_node(op)
        return self._shapes[op]

    def shape_of(self, tensor: Tensor) -> PartialTensorShape:
        """The shape of a tensor, as far as it is known.

        Raises:
            InvalidArgumentError: it has more elements than any tensor can have.
        """
        op = tensor.op
        shape = self.shape_handle((op, tensor.value_index))
        try:
            return ShapeAlgebra.as_partial_shape(shape)
        except InvalidArgumentError as error:
            message = f"'{tensor.name}' can have no such shape: {error.message}"
            raise op.error(message) from error

    def known_shapes(self) -> dict[Edge, PartialTensorShape]:
        """The shapes of which something was found out by now."""
        return {
            (op, index): ShapeAlgebra.as_partial_shape(shape)
            for op, shapes in self._shapes.items()
            for index, shape in enumerate(shapes)
            if shape.dims is not None
        }

    def held_by(self, edge: Edge) -> Sequence[ShapeAndType] | None:
        """The content of a resource or variant; None if it is not known."""
        return self._held.get(edge)

    def facts_of(self, edge: Edge) -> TensorFacts:
        """All that is known of a tensor."""
        shape = self.shape_handle(edge)
        value = self.values.partial_value_of(edge)
        return TensorFacts(shape, self._held.get(edge), value, self._items.get(edge))

    def define(self, op: Operation, facts: TensorFacts) -> None:
        """State the known facts of the one output of an operation, whatever its shape function says."""
        self._set_facts(op, [facts])
        self._defined.add(op)
        self._merge_given_shapes(op, lenient=True)

    def set_shape(self, tensor: Tensor, shape: Any) -> None:
        """Add what the caller knows of a shape.

        Raises:
            InvalidArgumentError: it disagrees with what is known.
        """
        op, index = tensor.op, tensor.value_index
        known = self.shape_handle((op, index))
        merged = merged_shape(known, PartialTensorShape(shape))
        if merged is not known:
            shapes = list(self._shapes[op])
            shapes[index] = merged
            self._shapes[op] = tuple(shapes)
            self.values.clear()
            self.was_told = True

    def forget(self, op: Operation) -> None:
        """Drop the inferred facts of an operation whose inputs or attrs have changed."""
        self._shapes.pop(op, None)
        self._forget_held([op])
        self.values.clear()

    def forget_behind(self, changed: Iterable[Operation]) -> None:
        """Drop the inferred facts of changed operations, and of all that depend on them."""

        def consumers(op: Operation) -> list[Operation]:
            """Those with known shapes; behind an unknown tensor only changed nodes have some."""
            return [c for c, index in op.consumer_edges() if index >= 0 and c in self._shapes]

        gone = reached(changed if self._shapes else (), consumers).keys() - self._defined
        for op in gone:
            self._shapes.pop(op, None)
        self._forget_held(gone)
        self.values.clear()

    def copy(self) -> ShapeRefiner:
        """A refiner of the same graph that knows the same."""
        other = ShapeRefiner(self._graph, self._functions)
        other.believes = self.believes
        other.adopt(self)
        other._defined, other._asked = set(self._defined), dict(self._asked)
        return other

    def adopt(self, other: ShapeRefiner) -> None:
        """Know what another refiner found about the same graph."""
        self._shapes = dict(other._shapes)
        self._held = dict(other._held)
        self._items = dict(other._items)
        self.was_told |= other.was_told
        self.values.clear()

    def adopt_copies(self, other: ShapeRefiner, copies: Mapping[Operation, Operation]) -> None:
        """Know of copies of operations what another refiner knows of the originals."""
        self.was_told |= other.was_told
        for op, copy in copies.items():
            if op in other._shapes:
                self._shapes[copy] = other._shapes[op]
                for index in range(len(copy.output_types)):
                    held = other._held.get((op, index))
                    if held is not None:
                        self._held[copy, index] = held

    def _forget_held(self, ops: Iterable[Operation]) -> None:
        """Drop what the outputs of operations hold."""
        for op in ops if self._held or self._items else ():
            for index in range(len(op.output_types)):
                self._held.pop((op, index), None)
                self._items.pop((op, index), None)

    def _refiner_of_body(self, graph: Graph) -> ShapeRefiner:
        refiner = type(self)(graph, self._functions)
        refiner.believes = self.believes
        return refiner

    def _waiting_for(self, op: Operation) -> list[Operation]:
        """The producers of its inputs whose shapes must be worked out first."""
        shapes, active = self._shapes, self._active
        waiting = [s for s in op.edges[::2] if s not in shapes and s not in active]
        if waiting and op.type in MERGE_OPS:
            return [source for source in waiting if source.type not in NEXT_ITERATION_OPS]
        return waiting

    def _known_shape(self, edge: Edge) -> ShapeHandle:
        known = self._shapes.get(edge[0])
        return ShapeHandle() if known is None else known[edge[1]]

    def _set_facts(self, op: Operation, facts: Sequence[TensorFacts]) -> None:
        """Note the known facts of the outputs of an operation."""
        self._shapes[op] = tuple([one.shape for one in facts])
        for index, one in enumerate(facts):
            if one.held is not None:
                self._held[op, index] = one.held
            if one.items is not None:
                self._items[op, index] = one.items
            if one.value is not None:
                self.values.learn((op, index), one.value)

    def _infer(self, op: Operation) -> None:
        check_time("inferring shapes at", op.name)
        registration, calls = op.signature.registration, op.traits.calls == "function"
        if registration is None or registration.shape_inference_fn is None:
            self._shapes[op] = tuple([ShapeHandle() for _ in op.signature.output_types])
        elif not (calls or registration.is_function_op) or not self._follow_call(op):
            self._run(op, self.context_of(op))
        self._merge_given_shapes(op)

    def context_of(self, op: Operation) -> InferenceContext:
        """A context for the shape function of a registered operation."""
        registration = op.signature.registration
        assert registration is not None
        known, edges = self._shapes, op.edges
        shapes = [
            known[edges[i]][edges[i + 1]] if edges[i] in known else ShapeHandle()
            for i in range(0, len(edges), 2)
        ]
        held = [self._held.get(edge) for edge in edges_of(op)] if self._held else ()
        producer = self._graph.graph_def_versions.producer
        try:
            return InferenceContext(
                registration.op_def,
                op.slim_node_def,
                shapes,
                handle_shapes=held,
                graph_def_version=producer,
            )
        except OpError as error:  # an input is missing
            error.add_node(op.name, op.type)
            raise

    def _run(self, op: Operation, context: InferenceContext) -> None:
        """Run the shape function and note its shapes."""
        self.run_shape_function(op, context)
        self.was_told |= context.has_doubts
        shapes = context.outputs() if self.believes else context.reliable_outputs()
        self._shapes[op] = tuple([shape or ShapeHandle() for shape in shapes])
        for index, held in context.held_by_outputs():
            self._held[op, index] = held

    def run_shape_function(self, op: Operation, context: InferenceContext) -> None:
        """Run the shape function, again for as long as it asks for constants that are new to it.

        Raises:
            InvalidArgumentError: the shapes break a rule of the op, or the function is at fault.
        """
        provided = self._asked.get(op.type, frozenset())
        if provided:
            self._provide_constants(op, context, provided)
        while True:
            failure = _failure_of(op, context)
            new = context.requests - provided
            provided |= new
            if not new or not self._provide_constants(op, context, provided, new):
                break
        self._asked[op.type] = provided
        if failure is not None:
            raise failure

    def _provide_constants(
        self, op: Operation, context: InferenceContext, asked: Requests, new: Requests = frozenset()
    ) -> bool:
        """Give the context the constants that it asks for; whether any of the new ones is known."""
        values: list[Any] = [None] * context.num_inputs()
        shapes: list[Any] = [None] * context.num_inputs()
        learned = False
        for index, edge in enumerate(edges_of(op)):
            if edge[0] not in self._shapes:
                continue
            if (index, False) in asked:
                values[index] = self.values.value_of(edge)
                learned |= values[index] is not None and (index, False) in new
            if (index, True) in asked:
                shapes[index] = self.values.shape_held_by(edge)
                learned |= shapes[index] is not None and (index, True) in new
        context.set_input_tensors(values)
        context.set_input_tensors_as_shapes(shapes)
        return learned

    def _follow_call(self, op: Operation) -> bool:
        """Infer a call through the body of its function; whether there is one."""
        from opkernel.graph.functions.calls import called_function  # of calls alone
        from opkernel.graph.inference.function_shapes import NoBodyError

        if _NO_CALL_INFERENCE in op.attr and op.attr[_NO_CALL_INFERENCE].b:
            return False
        try:
            facts = [self.facts_of(edge) for edge in edges_of(op)]
            results = self._functions.results(op.graph, called_function(op), facts)
            self.was_told |= self._functions.was_told
        except NoBodyError:
            return False
        except OpError as error:
            message = f"{error.message} (in the function that node '{op.name}' calls)"
            raise type(error)(message, node=error.node, op=error.op) from error
        if len(results) != len(op.output_types):
            return False
        self._set_facts(op, results)
        return True

    def _merge_given_shapes(self, op: Operation, *, lenient: bool = False) -> None:
        """Merge the shapes of the attr `_output_shapes` into those that were inferred.

        With `lenient` those that disagree are left aside.
        """
        given = _given_shapes(op) if self.believes else None
        if given is None:
            return
        self.was_told = True
        shapes = list(self._shapes[op])
        if len(given) < len(shapes) and not lenient:
            raise op.error(
                f"Node '{op.name}' has {len(shapes)} outputs but the _output_shapes attribute "
                f"specifies shapes for {len(given)} outputs"
            )
        for index, proto in enumerate(given[: len(shapes)]):
            fault = "an invalid _output_shapes attribute for output"
            try:
                shape = ShapeAlgebra.make_shape_from_shape_proto(proto)
                fault = "an _output_shapes attribute inconsistent with the GraphDef for output"
                shapes[index] = ShapeAlgebra.merge(shapes[index], shape)
            except InvalidArgumentError as error:
                if not lenient:
                    message = f"Node '{op.name}' has {fault} #{index}: {error.message}"
                    raise op.error(message) from error
        self._shapes[op] = tuple(shapes)


def _given_shapes(op: Operation) -> Sequence[TensorShapeProto] | None:
    """The attr `_output_shapes`; None for a node without it, or with one that is no list of shapes."""
    attrs = op.attr
    if _OUTPUT_SHAPES not in attrs:
        return None
    value = attrs[_OUTPUT_SHAPES]
    if value.WhichOneof("value") != "list" or (value.list.ListFields() and not value.list.shape):
        return None
    return value.list.shape


def _failure_of(op: Operation, context: InferenceContext) -> OpError | None:
    """Run the shape function of an operation once; returns its error."""
    registration = op.signature.registration
    assert registration is not None
    try:
        run_shape_fn(registration, context)
    except OpError as error:
        return error
    except RecursionError:  # the caller's, such as functions that call each other
        raise
    except Exception as error:  # whatever the author of the op did wrong
        what = f"The shape function of {op.type} failed: {error!r}, {_place_of(error)}"
        if isinstance(error, UnsetOutputError):
            what = str(error)
        failure = op.error(f"{what} (node '{op.name}')")
        failure.__cause__ = error
        return failure
    return None


def _place_of(error: Exception) -> str:
    """The file and line that raised an error."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return ""
    return f"{traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno}"


def facts_of(tensor: Tensor) -> TensorFacts:
    """All that is known of a tensor."""
    return tensor.graph.refiner.facts_of((tensor.op, tensor.value_index))


def merged_shape(known: ShapeHandle, given: PartialTensorShape) -> ShapeHandle:
    """The known shape merged with the given one.

    Raises:
        InvalidArgumentError: they disagree.
    """
    return ShapeAlgebra.merge(known, ShapeAlgebra.make_shape_from_partial_shape(given))
