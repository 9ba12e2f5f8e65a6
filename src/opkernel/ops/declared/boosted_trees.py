"""Shapes of ops on ensembles of boosted trees.

Source: TensorFlow core/ops/boosted_trees_ops.cc.
"""

from functools import partial

from opkernel.opdef import (
    DimensionHandle,
    InferenceContext,
    OpShapeInferenceFn,
    ShapeHandle,
    scalar_shape,
)
from opkernel.ops.declared.rules import (
    check_input_ranks,
    check_scalars,
    fixed_shapes,
    scalar_inputs_and_outputs,
    set_outputs,
)


def _check_node_id_range(c: InferenceContext) -> None:
    c.merge(c.with_rank(c.input(0), 1), c.vector(2))


def _vectors(c: InferenceContext, first: int, count: int) -> list[ShapeHandle]:
    return [c.with_rank(c.input(i), 1) for i in range(first, first + count)]


# Splits


def _best_gains_per_feature(c: InferenceContext) -> None:
    features = c.get_attr("num_features")
    _check_node_id_range(c)
    base = c.with_rank(c.input(1), 3)
    c.merge(base, c.make_shape([c.get_attr("max_splits"), None, 2]))
    for i in range(2, features + 1):
        c.merge(base, c.with_rank(c.input(i), 3))
    check_scalars(c, *range(features + 1, features + 4))
    vectors = [c.vector(None) for _ in range(3 * features)]
    set_outputs(c, [*vectors, *[c.matrix(None, 1) for _ in range(2 * features)]])


def _set_best_splits(c: InferenceContext, vectors: int) -> None:
    """`vectors` vectors, left and right contributions to the logits, and default directions."""
    logits = c.get_attr("logits_dimension")
    contributions = [c.matrix(None, logits) for _ in range(2)]
    set_outputs(c, [*[c.vector(None) for _ in range(vectors)], *contributions, c.vector(None)])


def _best_feature_split(c: InferenceContext) -> None:
    _check_node_id_range(c)
    c.with_rank(c.input(1), 4)
    check_scalars(c, 2, 3, 4, 5)
    _set_best_splits(c, 4)


def _best_feature_split_v2(c: InferenceContext) -> None:
    features = c.get_attr("num_features")
    _check_node_id_range(c)
    base = c.with_rank(c.input(1), 4)
    for i in range(2, features + 1):
        c.merge(base, c.with_rank(c.input(i), 4))
    _vectors(c, features + 1, 2)
    check_scalars(c, *range(features + 3, features + 7))
    _set_best_splits(c, 5)


def _sparse_best_feature_split(c: InferenceContext) -> None:
    _check_node_id_range(c)
    for i, rank in enumerate((2, 1, 1), start=1):
        c.with_rank(c.input(i), rank)
    check_scalars(c, 4, 5, 6, 7)
    _set_best_splits(c, 4)


# Statistics


def _aggregate_stats(c: InferenceContext) -> None:
    nodes, gradients, hessians, feature = check_input_ranks(c, 1, 2, 2, 2)
    for shape in (gradients, hessians, feature):
        c.merge(c.dim(nodes, 0), c.dim(shape, 0))
    stats = c.add(c.dim(gradients, 1), c.dim(hessians, 1))
    # One bucket more than asked for holds missing values.
    splits, buckets = c.get_attr("max_splits"), c.get_attr("num_buckets") + 1
    c.set_output(0, c.make_shape([splits, c.dim(feature, 1), buckets, stats]))


def _sparse_aggregate_stats(c: InferenceContext) -> None:
    nodes, gradients, hessians, indices, values, _ = check_input_ranks(c, 1, 2, 2, 2, 1, 1)
    for shape in (gradients, hessians):
        c.merge(c.dim(nodes, 0), c.dim(shape, 0))
    c.merge(c.dim(indices, 0), c.dim(values, 0))
    set_outputs(c, [c.matrix(None, 4), c.vector(None), c.vector(4)])


def _make_stats_summary(c: InferenceContext) -> None:
    features = c.get_attr("num_features")
    nodes, gradients, hessians = check_input_ranks(c, 1, 2, 2)
    c.merge(c.dim(nodes, 0), c.dim(gradients, 0))
    c.merge(gradients, hessians)
    for i in range(3, 3 + features):
        c.merge(c.dim(nodes, 0), c.dim(c.with_rank(c.input(i), 1), 0))
    sizes = [features, c.get_attr("max_splits"), c.get_attr("num_buckets"), 2]
    c.set_output(0, c.make_shape(sizes))


# Predictions


def _batch_size(c: InferenceContext, first: int) -> DimensionHandle:
    """Dimension 0 of the last of the bucketized features; each agrees with that of the first."""
    batch = c.unknown_dim()
    for i in range(first, first + c.get_attr("num_bucketized_features")):
        batch = c.dim(c.with_rank_at_most(c.input(i), 2), 0)
        c.merge(c.dim(c.input(first), 0), batch)
    return batch


def _predict(c: InferenceContext) -> None:
    batch = _batch_size(c, 1)
    c.set_output(0, c.matrix(batch, c.get_attr("logits_dimension")))


def _debug_outputs(c: InferenceContext) -> None:
    c.set_output(0, c.vector(_batch_size(c, 1)))


def _training_predict(c: InferenceContext) -> None:
    batch = _batch_size(c, 3)
    for i in (1, 2):
        c.merge(c.input(i), c.vector(batch))
    logits = c.matrix(batch, c.get_attr("logits_dimension"))
    set_outputs(c, [logits, c.vector(batch), c.vector(batch)])


# Ensembles and streams of quantiles


def _center_bias(c: InferenceContext) -> None:
    c.merge(c.with_rank(c.input(1), 2), c.with_rank(c.input(2), 2))
    check_scalars(c, 3, 4)
    c.set_output(0, c.scalar())


def _check_groups(c: InferenceContext, first: int, count: int, columns: int) -> None:
    """Node ids, gains, thresholds, left and right contributions: `count` inputs of each."""
    for i in range(first, first + count):
        nodes = c.dim(c.with_rank(c.input(i), 1), 0)
        for j in (1, 2):
            c.merge(c.with_rank(c.input(i + j * count), 1), c.vector(nodes))
        for j in (3, 4):
            c.merge(c.with_rank(c.input(i + j * count), 2), c.matrix(nodes, columns))


def _update_ensemble(c: InferenceContext) -> None:
    features = c.get_attr("num_features")
    c.merge(c.with_rank(c.input(1), 1), c.vector(features))
    _check_groups(c, 2, features, 1)


def _update_ensemble_v2(c: InferenceContext) -> None:
    features, groups = c.get_attr("num_features"), c.get_attr("num_groups")
    _vectors(c, 1, groups)
    _vectors(c, 1 + groups, features)
    _check_groups(c, 1 + groups + features, features, c.get_attr("logits_dimension"))


def _make_quantile_summaries(c: InferenceContext) -> None:
    features = c.get_attr("num_features")
    _vectors(c, 0, features + 1)
    check_scalars(c, features + 1)
    set_outputs(c, [c.matrix(None, 4) for _ in range(features)])


def _add_summaries(c: InferenceContext) -> None:
    check_scalars(c, 0)
    for i in range(1, 1 + c.get_attr("num_features")):
        c.with_rank(c.input(i), 2)


def _deserialize_streams(c: InferenceContext) -> None:
    check_scalars(c, 0)
    _vectors(c, 1, c.get_attr("num_streams"))


def _bucket_boundaries(c: InferenceContext) -> None:
    check_scalars(c, 0)
    set_outputs(c, [c.vector(None) for _ in range(c.num_outputs())])


def _flush_summaries(c: InferenceContext) -> None:
    set_outputs(c, [c.matrix(None, 4) for _ in range(c.num_outputs())])


def _bucketize(c: InferenceContext) -> None:
    features = c.get_attr("num_features")
    values = _vectors(c, 0, features)
    for shape in values[1:]:
        c.merge(c.dim(shape, 0), c.dim(values[0], 0))
    _vectors(c, features, features)
    set_outputs(c, [c.vector(c.dim(shape, 0)) for shape in values])


_state = partial(fixed_shapes, input_ranks=(0,))
_SCALARS = (
    "BoostedTreesCreateEnsemble",
    "BoostedTreesCreateQuantileStreamResource",
    "BoostedTreesDeserializeEnsemble",
    "BoostedTreesQuantileStreamResourceFlush",
    "BoostedTreesSerializeEnsemble",
    "IsBoostedTreesEnsembleInitialized",
    "IsBoostedTreesQuantileStreamResourceInitialized",
)

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    **dict.fromkeys(_SCALARS, scalar_inputs_and_outputs),
    "BoostedTreesAggregateStats": _aggregate_stats,
    "BoostedTreesBucketize": _bucketize,
    "BoostedTreesCalculateBestFeatureSplit": _best_feature_split,
    "BoostedTreesCalculateBestFeatureSplitV2": _best_feature_split_v2,
    "BoostedTreesCalculateBestGainsPerFeature": _best_gains_per_feature,
    "BoostedTreesCenterBias": _center_bias,
    "BoostedTreesEnsembleResourceHandleOp": scalar_shape,
    "BoostedTreesExampleDebugOutputs": _debug_outputs,
    "BoostedTreesFlushQuantileSummaries": _flush_summaries,
    "BoostedTreesGetEnsembleStates": _state((), (), (), (), (2,)),
    "BoostedTreesMakeQuantileSummaries": _make_quantile_summaries,
    "BoostedTreesMakeStatsSummary": _make_stats_summary,
    "BoostedTreesPredict": _predict,
    "BoostedTreesQuantileStreamResourceAddSummaries": _add_summaries,
    "BoostedTreesQuantileStreamResourceDeserialize": _deserialize_streams,
    "BoostedTreesQuantileStreamResourceGetBucketBoundaries": _bucket_boundaries,
    "BoostedTreesQuantileStreamResourceHandleOp": scalar_shape,
    "BoostedTreesSparseAggregateStats": _sparse_aggregate_stats,
    "BoostedTreesSparseCalculateBestFeatureSplit": _sparse_best_feature_split,
    "BoostedTreesTrainingPredict": _training_predict,
    "BoostedTreesUpdateEnsemble": _update_ensemble,
    "BoostedTreesUpdateEnsembleV2": _update_ensemble_v2,
}
