"""Where values may cross the borders of loops."""

from collections.abc import Mapping, Sequence

from opkernel.graph import Operation, Tensor
from opkernel.graph.core.control_flow_info import ROOT, LoopFrame
from opkernel.graph.core.control_flow_ops import ENTER_OPS, EXIT_OPS
from opkernel.graph.core.loop_form import ControlFlowFormError, check_sources
from opkernel.graph.edit.prune import Needs


def check_borders(
    order: Sequence[Operation],
    fetches: Sequence[Tensor],
    feeds: Sequence[Tensor],
    frames: Mapping[str, LoopFrame],
    needs: Needs,
) -> None:
    """Raise ControlFlowFormError where values cross the border of a loop otherwise than by its variables."""
    for tensor in feeds:
        if frames.get(tensor.op.name, ROOT) is not ROOT:
            raise ControlFlowFormError("a tensor inside a loop is fed", tensor.op)
    for tensor in fetches:
        op, frame = tensor.op, frames.get(tensor.op.name, ROOT)
        is_inside = op.type in ENTER_OPS or (
            frame is not ROOT and not (op.type in EXIT_OPS and frame.parent is ROOT)
        )
        if is_inside and not needs.is_fed(tensor):
            raise ControlFlowFormError("a tensor inside a loop is fetched", op)
    for op in order:
        check_sources(op, needs)
