"""The full types of a whole graph.

Nodes begin with the types that they carry or that their ops declare. Type inference functions then
refine these types node by node, inputs first. A node is visited again when the type of an input was
refined later, but three times at most: a loop could refine without end.

Source: TensorFlow core/common_runtime/type_inference.cc.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import TYPE_CHECKING

from opkernel.errors import OpError, UnimplementedError
from opkernel.graph.core.edges import edges_of
from opkernel.graph.core.operation import Operation
from opkernel.graph.core.operation_table import order_by_inputs
from opkernel.graph.core.tensor_name import CONTROL_SLOT
from opkernel.opdef import TypeInferenceFn
from opkernel.opdef.full_type import (
    FullTypeId,
    full_type_of_node,
    full_type_string,
    get_arg_default_unset,
    is_equal,
    is_subtype,
)
from opkernel.proto import FullTypeDef

if TYPE_CHECKING:
    from opkernel.graph.core.graph import Graph

_MAX_VISITS_PER_NODE = 3
_MAX_DEPTH, _MAX_SIZE = 64, 100_000  # a message nested over 100 deep cannot be read from a file


def infer_full_types(graph: Graph) -> dict[Operation, FullTypeDef]:
    """The full types of the outputs of each operation of which any is known.

    Each is a TFT_PRODUCT of one type for each output argument. The graph is not changed.

    Raises:
        InvalidArgumentError: the types of inputs break a rule of an op, or an inferred type contradicts
            a known one; the message names the node.
        UnimplementedError: an op takes its types from a function that it calls.
    """
    inference = _Inference(graph)
    inference.run()
    return inference.types


class _Inference:
    def __init__(self, graph: Graph) -> None:
        self._order = order_by_inputs(graph.get_operations())
        self._rank = {op: rank for rank, op in enumerate(self._order) if _infers(op)}
        self.types: dict[Operation, FullTypeDef] = {}
        for op in self._order:
            registration = op.signature.registration
            if registration is not None:
                known = full_type_of_node(op.message, registration)
                if known is not None:
                    self.types[op] = known

    def run(self) -> None:
        """Visit the operations with type inference functions until nothing changes."""
        ready = list(self._rank.values())
        waiting, visits = set(ready), dict.fromkeys(ready, 0)
        while ready:
            rank = heapq.heappop(ready)
            waiting.remove(rank)
            visits[rank] += 1
            for refined in self._visit(self._order[rank]):
                for consumer in self._consumers(refined) - waiting:
                    if visits[consumer] < _MAX_VISITS_PER_NODE:
                        waiting.add(consumer)
                        heapq.heappush(ready, consumer)

    def _consumers(self, op: Operation) -> set[int]:
        """The ranks of the operations that take an output and have a type inference function."""
        takers = [consumer for consumer, index in op.consumer_edges() if index != CONTROL_SLOT]
        return {self._rank[taker] for taker in takers if taker in self._rank}

    def _visit(self, op: Operation) -> list[Operation]:
        """Infer from the types of an operation's inputs; the operations that this refined."""
        registration = op.signature.registration
        assert registration is not None
        refined = []
        if registration.forward_type_fn is not None:
            inferred = self._call(registration.forward_type_fn, op, op)
            if self._refine(op, inferred):
                refined.append(op)
        if registration.reverse_type_fn is not None:
            index = registration.reverse_type_input
            if 2 * index >= len(op.edges):
                raise op.error(
                    f"The type inference function of {op.type} is for input {index}, but node "
                    f"'{op.name}' has {len(op.edges) // 2} inputs"
                )
            source = op.edges[2 * index]
            inferred = self._call(registration.reverse_type_fn, op, source)
            if self._refine(source, inferred):
                refined.append(source)
        return refined

    def _call(self, fn: TypeInferenceFn, op: Operation, target: Operation) -> FullTypeDef:
        """The types that a function of `op` infers for the outputs of `target`."""

        def infer_function_rets(attr: str, types: Sequence[FullTypeDef]) -> FullTypeDef:
            raise UnimplementedError(
                f"the types of the function in attr '{attr}' cannot be inferred"
            )

        inputs = [self._output_type(*edge) for edge in edges_of(op)]
        context = f"while inferring type of node '{target.name}'"
        if target is not op:
            context += f" via '{op.name}'"
        try:
            return fn(inputs, infer_function_rets)
        except OpError as error:
            message = f"{error.message}\n\t{context}"
            raise type(error)(message, node=op.name, op=op.type) from error
        except (ValueError, TypeError, LookupError, ArithmeticError) as error:
            raise op.error(
                f"The type inference function of {op.type} failed: {error!r} {context}"
            ) from error

    def _output_type(self, op: Operation, index: int) -> FullTypeDef:
        """The type of one output; unset where it is not known."""
        known = self.types.get(op)
        if known is None or known.type_id != FullTypeId.TFT_PRODUCT:
            return FullTypeDef()
        return get_arg_default_unset(known, index)

    def _refine(self, op: Operation, inferred: FullTypeDef) -> bool:
        """Note the inferred type of an operation; returns whether it tells more than the known type."""
        if inferred.type_id == FullTypeId.TFT_UNSET:
            return False
        known = self.types.get(op)
        if known is not None:
            if is_equal(known, inferred) or is_subtype(known, inferred):
                return False
            if not is_subtype(inferred, known):
                raise op.error(
                    f"type mismatch for node '{op.name}': expected a subtype of: "
                    f"{full_type_string(known)} got: {full_type_string(inferred)}"
                )
        _check_extent(op, inferred)
        self.types[op] = inferred
        return True


def _infers(op: Operation) -> bool:
    registration = op.signature.registration
    return registration is not None and not (
        registration.forward_type_fn is None and registration.reverse_type_fn is None
    )


def _check_extent(op: Operation, full_type: FullTypeDef) -> None:
    """Raise InvalidArgumentError if a type has grown beyond what a file may hold."""
    level, size, depth = [full_type], 0, 0
    while level:
        size, depth = size + len(level), depth + 1
        if size > _MAX_SIZE or depth > _MAX_DEPTH:
            raise op.error(
                f"The full type of node '{op.name}' has over {_MAX_DEPTH} levels or {_MAX_SIZE} "
                "parts"
            )
        level = [arg for part in level for arg in part.args]
