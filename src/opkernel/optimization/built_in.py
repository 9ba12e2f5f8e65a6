"""The passes that come with opkernel: when each runs, and for which graphs.

Their modules are imported when they first run: most graphs need few of them.
"""

from opkernel.graph.core.control_flow_ops import (
    ENTER_OPS,
    LOW_LEVEL_CONTROL_FLOW,
    SWITCH_OPS,
)
from opkernel.opdef import OpTraits
from opkernel.optimization.folding.filters import FILTERS
from opkernel.optimization.pass_registry import Grouping, Pattern, register_built_in


def _is_followed(traits: OpTraits) -> bool:
    """Whether shapes are followed through an op: through loops, and through lists."""
    return traits.calls == "while" or bool(traits.item_rule)


_BEFORE_FILTERS: Pattern = frozenset({"Mul", "RealDiv", "Pad", "PadV2"})
"""The ops that `input_folding` folds into filters."""

PRE, POST = Grouping.PRE_PLACEMENT, Grouping.POST_PLACEMENT

register_built_in(
    PRE, 1, "folding.shape_specialization.shape_specialization", ops=ENTER_OPS, where=_is_followed
)
register_built_in(
    PRE, 3, "debug_stripper.debug_stripper", on_request=True, where=lambda op: op.debug_only
)
register_built_in(
    PRE,
    5,
    "control_flow.dead_branches.dead_branches",
    ops=SWITCH_OPS,
    where=lambda op: op.chooses_function,
)
register_built_in(PRE, 10, "functions.function_inlining.function_inlining", for_functions=True)
register_built_in(
    PRE,
    27,
    "control_flow.functionalize_control_flow.functionalize_control_flow",
    ops=LOW_LEVEL_CONTROL_FLOW,
    where=lambda op: bool(op.calls),
    for_engines=True,
)
register_built_in(PRE, 50, "algebra.identities.identities", where=lambda op: op.passes_on)
register_built_in(PRE, 60, "control_flow.control_edges.control_edges")

register_built_in(
    POST,
    10,
    "folding.shape_materialization.shape_materialization",
    ops=["Reshape"],
    where=lambda op: op.reads_shapes_only,
)
register_built_in(POST, 15, "folding.constants_into_loops.constants_into_loops", ops=["Enter"])
register_built_in(
    POST,
    15,
    "control_flow.while_invariants.while_invariants",
    where=lambda op: op.calls == "while",
)
register_built_in(POST, 20, "folding.constant_folding.constant_folding")
register_built_in(POST, 30, "algebra.arithmetic.arithmetic")
register_built_in(POST, 32, "algebra.aggregates.aggregates")
register_built_in(POST, 34, "algebra.layout.layout", where=lambda op: op.has_data_format)
register_built_in(POST, 36, "algebra.transposes.transposes", ops=["Transpose"])
register_built_in(POST, 38, "folding.input_folding.input_folding", ops=_BEFORE_FILTERS)
register_built_in(POST, 40, "folding.batch_norm_folding.batch_norm_folding", ops=FILTERS)
register_built_in(POST, 50, "control_flow.loop_invariants.loop_invariants", ops=["Enter"])
register_built_in(
    POST, 55, "functions.hoist_unary_over_split.hoist_unary_over_split", ops=["Split"]
)
register_built_in(POST, 70, "algebra.common_subexpressions.common_subexpressions")
register_built_in(POST, 78, "fusion.fused_ops.fusion_onednn", ops=["BiasAdd"])
register_built_in(POST, 80, "fusion.fused_ops.fusion", ops=["BiasAdd"])

CLUSTERING = frozenset(
    {
        *(
            "bounded_lists",
            "build_xla_ops",
            "clone_constants_for_better_clustering",
            "cluster_scoping",
        ),
        *("encapsulate_subgraphs", "functionalize_control_flow", "increase_dynamism_for_auto_jit"),
        *("mark_for_compilation", "partially_decluster"),
    }
)
"""The passes that form clusters. They do so where the editor has JitOptions."""

EXEC = Grouping.POST_REWRITE_FOR_EXEC
for _phase, _place, _ops in (
    (5, "clone_constants.clone_constants_for_better_clustering", ()),
    (7, "bounded_lists.bounded_lists", ("EmptyTensorList", "StackV2")),
    (9, "cluster_scoping.cluster_scoping", ("Stage", "Unstage")),
    (10, "mark_for_compilation.mark_for_compilation", ()),
    (20, "increase_dynamism.increase_dynamism_for_auto_jit", ("Slice",)),
    (30, "partially_decluster.partially_decluster", ()),
    (50, "encapsulate_subgraphs.encapsulate_subgraphs", ()),
    (60, "build_xla_ops.build_xla_ops", ()),
):
    register_built_in(EXEC, _phase, f"clusters.{_place}", ops=_ops, for_engines=True)
