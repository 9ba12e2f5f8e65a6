"""The passes that come with opkernel: when each runs, and for which graphs.

Their modules are imported when they first run: most graphs need few of them.
"""

from typing import NamedTuple

from opkernel.graph.core.structural_ops import ENTER_OPS, LOW_LEVEL_CONTROL_FLOW, SWITCH_OPS
from opkernel.opdef import OpTraits
from opkernel.optimization.optimize import REGISTRY, Grouping, Pattern, register_built_in


def _is_followed(traits: OpTraits) -> bool:
    """Whether shapes are followed through an op: through loops, and through lists."""
    return traits.calls == "while" or bool(traits.item_rule)


class Filter(NamedTuple):
    """The second input of an op that is linear in its first input and in a filter.

    Attributes:
        rank: how many dimensions it has.
        channels: those that are the channels of the output; the one before the last is the input's.
    """

    rank: int
    channels: tuple[int, ...]


FILTERS = {
    "Conv2D": Filter(4, (3,)),
    "Conv3D": Filter(5, (4,)),
    "DepthwiseConv2dNative": Filter(4, (2, 3)),
    "MatMul": Filter(2, (1,)),
}
"""The filters of ops, which passes fold constants into."""

_BEFORE_FILTERS: Pattern = frozenset({"Mul", "RealDiv", "Pad", "PadV2"})
"""The ops that `input_folding` folds into filters."""

PRE, POST = Grouping.PRE_PLACEMENT, Grouping.POST_PLACEMENT

register_built_in(PRE, 1, "folding.shapes:shape_specialization", ops=ENTER_OPS, where=_is_followed)
register_built_in(
    PRE, 3, "dependencies:debug_stripper", on_request=True, where=lambda op: op.debug_only
)
register_built_in(
    PRE,
    5,
    "control_flow.dead_code:dead_branches",
    ops=SWITCH_OPS,
    where=lambda op: op.chooses_function,
)
register_built_in(PRE, 10, "functions:function_inlining", for_functions=True)
register_built_in(
    PRE,
    27,
    "control_flow.functionalize_control_flow",
    ops=LOW_LEVEL_CONTROL_FLOW,
    where=lambda op: bool(op.calls),
    for_engines=True,
)
register_built_in(PRE, 50, "dependencies:identities", where=lambda op: op.passes_on)
register_built_in(PRE, 60, "dependencies:control_edges")

register_built_in(
    POST,
    10,
    "folding.shapes:shape_materialization",
    ops=["Reshape"],
    where=lambda op: op.reads_shapes_only,
)
register_built_in(POST, 15, "folding.constant_folding:constants_into_loops", ops=["Enter"])
register_built_in(
    POST, 15, "control_flow.loop_invariants:while_invariants", where=lambda op: op.calls == "while"
)
register_built_in(POST, 20, "folding.constant_folding")
register_built_in(POST, 30, "algebra.arithmetic")
register_built_in(POST, 32, "algebra.aggregates")
register_built_in(POST, 34, "algebra.layout", where=lambda op: bool(op.images), rounds=True)
register_built_in(POST, 36, "algebra.transposes", ops=["Transpose"], rounds=True)
register_built_in(POST, 38, "folding.input_folding", ops=_BEFORE_FILTERS, rounds=True)
register_built_in(POST, 40, "folding.batch_norm_folding", ops=FILTERS, rounds=True)
register_built_in(POST, 50, "control_flow.loop_invariants", ops=["Enter"])
register_built_in(POST, 55, "algebra.hoist_unary_over_split", ops=["Split"])
register_built_in(POST, 70, "algebra.common_subexpressions")
register_built_in(POST, 78, "fusion:fusion_onednn", ops=["BiasAdd"], rounds=True)
register_built_in(POST, 80, "fusion", ops=["BiasAdd"], rounds=True)
register_built_in(POST, 90, "scoped_allocator", on_request=True, ops=["CollectiveReduce"])

EXEC = Grouping.POST_REWRITE_FOR_EXEC
for _phase, _place, _ops in (
    (5, "before_marking:clone_constants_for_better_clustering", ()),
    (7, "before_marking:bounded_lists", ("EmptyTensorList", "StackV2")),
    (9, "before_marking:cluster_scoping", ("Stage", "Unstage")),
    (10, "mark_for_compilation", ()),
    (20, "after_marking:increase_dynamism_for_auto_jit", ("Slice",)),
    (30, "after_marking:partially_decluster", ()),
    (50, "encapsulate_subgraphs", ()),
    (60, "encapsulate_subgraphs:build_xla_ops", ()),
):
    register_built_in(EXEC, _phase, f"clusters.{_place}", ops=_ops, for_engines=True)

CLUSTERING = frozenset(one.name for one in REGISTRY if one.for_engines)
"""The passes that form clusters. They do so where the editor has JitOptions."""
