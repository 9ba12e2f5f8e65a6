"""FunctionShapes: the known facts of a function's results, from the known facts of its arguments.

A body is made once, and inferred once for each set of facts.

State: `_bodies` holds bodies by function and attrs, `_results` holds results by body and facts.
`_active` holds the functions whose bodies are being inferred.

Source: InferShapesForFunction in TensorFlow core/common_runtime/shape_refiner.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from opkernel.errors import OpError
from opkernel.graph.inference.tensor_facts import FactsKey, Renaming, TensorFacts, key_of_facts
from opkernel.opdef import DimensionHandle, ShapeAndType
from opkernel.opdef.shapes.shape_algebra import ShapeAlgebra
from opkernel.proto import NameAttrList, OpDef
from opkernel.types import DataType, PartialTensorShape

if TYPE_CHECKING:
    from opkernel.graph.core.graph import Graph
    from opkernel.graph.functions.function_body import FunctionBody
    from opkernel.graph.inference.shape_refiner import ShapeRefiner

_MAX_DEPTH = 24
_MAX_RESULTS = 4096


class NoBodyError(Exception):
    """There is no body to look into; the message says why."""


_Result = tuple[list[DimensionHandle], list[TensorFacts]]


class FunctionShapes:
    """Infers through function bodies.

    `refiner_of` makes what infers the shapes of a body.

    Attributes:
        was_told: whether a shape of a body was only stated.
    """

    def __init__(self, refiner_of: Callable[[Graph], ShapeRefiner]) -> None:
        self.was_told = False
        self._refiner_of = refiner_of
        self._bodies: dict[bytes, FunctionBody] = {}
        self._results: dict[tuple[FunctionBody, FactsKey], _Result] = {}
        self._active: list[FunctionBody] = []

    def results(
        self, graph: Graph, function: NameAttrList, arguments: Sequence[TensorFacts]
    ) -> list[TensorFacts]:
        """The known facts of the results of a function.

        Raises:
            NoBodyError: there is no such function, it calls itself, or calls are nested too deep.
            InvalidArgumentError: the shapes in the body break a rule of an op.
        """
        body = self._body(graph, function)
        if len(arguments) != len(body.arg_nodes):
            raise NoBodyError(f"function '{body.name}' takes {len(body.arg_nodes)} arguments")
        key, dims = key_of_facts(arguments)
        found = self._results.get((body, key))
        if found is None:
            found = dims, self._infer(body, arguments)
            if len(self._results) < _MAX_RESULTS:
                self._results[body, key] = found
        known_for, results = found
        if known_for == dims:
            return results
        renaming = Renaming(known_for, dims)
        return [renaming.facts(facts) for facts in results]

    def _body(self, graph: Graph, function: NameAttrList) -> FunctionBody:
        library = graph.function_library
        definition = library.get(function.name)
        if definition is None:
            raise NoBodyError(f"function '{function.name}' is not in the library")
        key = function.SerializeToString(deterministic=True)
        body = self._bodies.get(key)
        if body is None or body.function_def is not definition:
            from opkernel.graph.functions.function_body import instantiate_into

            try:
                body = instantiate_into(graph.empty(), function)
            except OpError as error:
                raise NoBodyError(
                    f"function '{function.name}' cannot be instantiated: {error.message}"
                ) from error
            self._bodies[key] = body
        return body

    def _infer(self, body: FunctionBody, arguments: Sequence[TensorFacts]) -> list[TensorFacts]:
        if body in self._active or len(self._active) >= _MAX_DEPTH:
            raise NoBodyError(f"function '{body.name}' calls itself, or calls are nested too deep")
        try:
            self._active.append(body)
            refiner = self._refiner_of(body.graph)
            signature = body.function_def.signature
            declared = _declared(signature.input_arg, len(arguments))
            for node, facts, arg in zip(body.arg_nodes, arguments, declared, strict=True):
                refiner.define(node, _with_declared_handle(facts, arg))
            declared = _declared(signature.output_arg, len(body.ret_nodes))
            results = [
                _with_declared_handle(refiner.facts_of((node.edges[0], node.edges[1])), arg)
                for node, arg in zip(body.ret_nodes, declared, strict=True)
            ]
            self.was_told |= refiner.was_told
            return results
        finally:
            self._active.pop()


def _declared(args: Sequence[OpDef.ArgDef], count: int) -> Sequence[OpDef.ArgDef | None]:
    """The declaration of each argument; none where some stand for lists."""
    return args if len(args) == count else [None] * count


def _with_declared_handle(facts: TensorFacts, arg: OpDef.ArgDef | None) -> TensorFacts:
    """The facts, with what the declaration says that a resource or variant holds."""
    if facts.held is not None or arg is None or not arg.handle_data:
        return facts
    held = [
        ShapeAndType(
            ShapeAlgebra.make_shape_from_partial_shape(PartialTensorShape.from_proto(entry.shape)),
            DataType(entry.dtype),
        )
        for entry in arg.handle_data
    ]
    return TensorFacts(facts.shape, held, facts.value)
