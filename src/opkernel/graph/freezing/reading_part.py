"""ReadingPart: what feeds and fetches need of a graph, whose variables can become constants.

Source: TensorFlow python/framework/convert_to_constants.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from opkernel.errors import FailedPreconditionError, UnimplementedError
from opkernel.graph.core.control_flow_ops import LOW_LEVEL_CONTROL_FLOW
from opkernel.graph.core.graph import Graph
from opkernel.graph.core.operation import Operation
from opkernel.graph.core.structural_ops import ASSIGNMENTS, STRUCTURAL_OPS
from opkernel.graph.core.tensor import Tensor
from opkernel.graph.edit.graph_edit import GraphEdit
from opkernel.graph.freezing.body import Body
from opkernel.graph.freezing.counterparts import Constants
from opkernel.graph.freezing.follow import Followed
from opkernel.graph.freezing.frozen_functions import frozen_graph
from opkernel.graph.freezing.held_values import HeldValue
from opkernel.graph.functions.function_library import FunctionLibraryDefinition
from opkernel.proto import NodeDef
from opkernel.types import DataType


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
