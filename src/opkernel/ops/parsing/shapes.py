"""Shapes of the ops that parse serialized Example and SequenceExample messages.

Each feature is sparse, dense or ragged. A feature of a SequenceExample belongs to the context or to a
feature list. Values of a feature list have a dimension for the steps before their own dimensions.

Source: TensorFlow core/ops/parsing_ops.cc, core/util/example_proto_helper.cc.
"""

from collections.abc import Iterator, Sequence

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import DimensionHandle, InferenceContext, ShapeHandle
from opkernel.opdef.common_shapes.rules import check_input_ranks, defined_shape, set_outputs
from opkernel.types import PartialTensorShape

_PARTS = ("context", "feature_list")


# Outputs of a kind of features


def _sparse(
    c: InferenceContext, count: int, batch: ShapeHandle, inner_rank: int
) -> Iterator[ShapeHandle]:
    """Indices, values and shapes of `count` sparse tensors, `inner_rank` more than the batch's."""
    rank = c.rank(batch) + inner_rank if c.rank_known(batch) else None
    yield from [c.matrix(None, rank) for _ in range(count)]
    yield from [c.vector(None) for _ in range(count)]
    yield from [c.vector(rank) for _ in range(count)]


def _dense(
    c: InferenceContext, shapes: Sequence[PartialTensorShape], prefix: ShapeHandle
) -> Iterator[ShapeHandle]:
    """Dense tensors of these shapes, with the dimensions of `prefix` before."""
    for shape in shapes:
        yield c.concatenate(prefix, c.make_shape_from_partial_shape(shape))


def _ragged(
    c: InferenceContext, count: int, examples: DimensionHandle, ragged_rank: int
) -> Iterator[ShapeHandle]:
    """Values and row splits, the outermost first, of `count` ragged tensors."""
    splits = c.add(examples, 1)
    yield from [c.vector(None) for _ in range(count)]
    yield from [c.vector(splits) for _ in range(count)]
    yield from [c.vector(None) for _ in range(count * (ragged_rank - 1))]


def _number_of_examples(c: InferenceContext, batch: ShapeHandle) -> DimensionHandle:
    return c.dim(batch, 0) if c.rank(batch) == 1 else c.unknown_dim()


# Attrs


def _check_equal(c: InferenceContext, what: str, count: int, *lists: str) -> None:
    """`count`, that of `what`, must be the length of these list attrs."""
    lengths = [len(c.get_attr(name)) for name in lists]
    if any(length != count for length in lengths):
        named = [f"{name} ({length})" for name, length in zip(lists, lengths, strict=True)]
        raise InvalidArgumentError(f"{what} ({count}) must match the size of {' and '.join(named)}")


def _check_same_length(count: int, keys: str, other: int, name: str) -> None:
    if count != other:
        raise InvalidArgumentError(f"len({keys}) != len({name})")


def _check_dense_shapes(c: InferenceContext, name: str) -> None:
    """Only the first dimension of a dense feature may be unknown: its length then varies."""
    for i, shape in enumerate(c.get_attr(name)):
        if shape.rank is None or None in shape.as_list()[1:]:
            raise InvalidArgumentError(
                f"dense_shapes[{i}] has unknown rank or unknown inner dimensions: {shape}"
            )


def _defined_shapes(c: InferenceContext, part: str) -> list[PartialTensorShape]:
    """The shapes of the dense features of a part of a SequenceExample."""
    return [defined_shape(shape) for shape in c.get_attr(f"{part}_dense_shapes")]


# Example


def parse_example_shape(c: InferenceContext) -> None:
    _check_dense_shapes(c, "dense_shapes")
    _check_example_attrs(c, c.get_attr("Nsparse"), c.get_attr("Ndense"))
    batch, _ = check_input_ranks(c, 1, 1)
    sparse = _sparse(c, c.get_attr("Nsparse"), batch, 1)
    set_outputs(c, [*sparse, *_dense(c, c.get_attr("dense_shapes"), batch)])


def _check_example_attrs(c: InferenceContext, sparse: int, dense: int) -> None:
    _check_same_length(sparse, "sparse_keys", len(c.get_attr("sparse_types")), "sparse_types")
    _check_same_length(dense, "dense_keys", len(c.get_attr("Tdense")), "dense_types")
    _check_same_length(dense, "dense_keys", len(c.get_attr("dense_shapes")), "dense_shapes")


def parse_example_v2_shape(c: InferenceContext) -> None:
    _check_dense_shapes(c, "dense_shapes")
    ragged = len(c.get_attr("ragged_value_types"))
    _check_example_attrs(c, c.get_attr("num_sparse"), len(c.get_attr("Tdense")))
    splits = len(c.get_attr("ragged_split_types"))
    _check_same_length(ragged, "ragged_keys", splits, "ragged_split_types")
    batch = c.with_rank_at_most(c.input(0), 1)
    c.with_rank_at_most(c.input(1), 1)
    outputs = [
        *_sparse(c, c.get_attr("num_sparse"), batch, 1),
        *_dense(c, c.get_attr("dense_shapes"), batch),
        *_ragged(c, ragged, _number_of_examples(c, batch), 1),
    ]
    set_outputs(c, outputs)


def parse_single_example_shape(c: InferenceContext) -> None:
    count = c.get_attr("num_sparse")
    _check_equal(c, "num_sparse", count, "sparse_keys", "sparse_types")
    _check_dense_shapes(c, "dense_shapes")
    _check_example_attrs(c, count, len(c.get_attr("dense_keys")))
    (example,) = check_input_ranks(c, 0)
    sparse = _sparse(c, count, example, 1)
    set_outputs(c, [*sparse, *_dense(c, c.get_attr("dense_shapes"), example)])


# SequenceExample


def _check_sequence_attrs(c: InferenceContext, dense: dict[str, int]) -> None:
    """Each kind of features has as many types and shapes as features."""
    for part in _PARTS:
        count = c.get_attr(f"N{part}_sparse")
        _check_equal(c, f"num_{part}_sparse", count, f"{part}_sparse_types")
        types = "Tcontext_dense" if part == "context" else "feature_list_dense_types"
        _check_equal(c, f"num_{part}_dense", dense[part], types, f"{part}_dense_shapes")


def _sequence_outputs(
    c: InferenceContext,
    batch: ShapeHandle,
    shapes: Sequence[Sequence[PartialTensorShape]],
    ragged: Sequence[int] = (0, 0),
) -> Iterator[ShapeHandle]:
    """The outputs of features of the context, then of feature lists, whose lengths follow them."""
    context_shapes, list_shapes = shapes
    examples = _number_of_examples(c, batch)
    steps = c.concatenate(batch, c.vector(None))
    yield from _sparse(c, c.get_attr("Ncontext_sparse"), batch, 1)
    yield from _dense(c, context_shapes, batch)
    yield from _ragged(c, ragged[0], examples, 1)
    yield from _sparse(c, c.get_attr("Nfeature_list_sparse"), batch, 2)
    yield from _dense(c, list_shapes, steps)
    yield from [batch] * len(list_shapes)
    yield from _ragged(c, ragged[1], examples, 2)


def parse_sequence_example_shape(c: InferenceContext) -> None:
    shapes = [_defined_shapes(c, part) for part in _PARTS]
    dense = {}
    for part in _PARTS:
        for kind in ("sparse", "dense"):
            count = c.get_attr(f"N{part}_{kind}")
            _check_equal(c, f"num_{part}_{kind}", count, f"{part}_{kind}_keys")
        dense[part] = c.get_attr(f"N{part}_dense")
    _check_sequence_attrs(c, dense)
    batch, _ = check_input_ranks(c, 1, 1)
    set_outputs(c, _sequence_outputs(c, batch, shapes))


def parse_sequence_example_v2_shape(c: InferenceContext) -> None:
    shapes = [_defined_shapes(c, part) for part in _PARTS]
    dense = {
        "context": len(c.get_attr("Tcontext_dense")),
        "feature_list": c.get_attr("Nfeature_list_dense"),
    }
    _check_sequence_attrs(c, dense)
    ragged = []
    for part in _PARTS:
        types = f"{part}_ragged_value_types", f"{part}_ragged_split_types"
        ragged.append(len(c.get_attr(types[0])))
        _check_equal(c, f"num_{part}_ragged", ragged[-1], *types)
    batch = c.with_rank_at_most(c.input(0), 1)
    c.with_rank_at_most(c.input(1), 1)
    set_outputs(c, _sequence_outputs(c, batch, shapes, ragged))


def parse_single_sequence_example_shape(c: InferenceContext) -> None:
    context_shapes, list_shapes = (_defined_shapes(c, part) for part in _PARTS)
    types = {"context": "Tcontext_dense", "feature_list": "feature_list_dense_types"}
    for kind in ("sparse", "dense"):
        for part in _PARTS:
            name = f"{part}_{kind}_types"
            given = len(c.get_attr(types[part] if kind == "dense" else name))
            _check_same_length(c.get_attr(f"N{part}_{kind}"), f"{part}_{kind}_keys", given, name)
    dense = c.get_attr("Ncontext_dense")
    _check_same_length(dense, "context_dense_keys", len(context_shapes), "context_dense_shapes")
    example, _ = check_input_ranks(c, 0, 1)
    outputs = [
        *_sparse(c, c.get_attr("Ncontext_sparse"), example, 1),
        *_dense(c, context_shapes, example),
        *_sparse(c, c.get_attr("Nfeature_list_sparse"), example, 2),
        *_dense(c, list_shapes, c.vector(None)),
    ]
    set_outputs(c, outputs[: c.num_outputs()])
