"""A registry of a few ops of our own, and GraphDefs from short text."""

from google.protobuf import text_format

from opkernel.opdef import (
    InferenceContext,
    OpRegistry,
    global_op_registry,
    register_op,
    unknown_shape,
)
from opkernel.opdef.common_shapes import (
    broadcast_binary_op_shape,
    no_outputs,
    scalar_shape,
    unchanged_shape,
)
from opkernel.proto import GraphDef


def const_shape(c: InferenceContext) -> None:
    c.set_output(0, c.make_shape_from_shape_proto(c.node_def.attr["value"].tensor.tensor_shape))


def placeholder_shape(c: InferenceContext) -> None:
    c.set_output(0, c.make_shape_from_partial_shape(c.get_attr("shape")))


def fill_shape(c: InferenceContext) -> None:
    c.set_output(0, c.make_shape_from_shape_tensor(0))


def shape_shape(c: InferenceContext) -> None:
    rank = c.rank(c.input(0))
    c.set_output(0, c.vector(rank if c.rank_known(c.input(0)) else None))


def pack_shape(c: InferenceContext) -> None:
    c.set_output(0, c.vector(c.num_inputs()))


def strided_slice_shape(c: InferenceContext) -> None:
    c.set_output(0, c.scalar() if c.get_attr("shrink_axis_mask") else c.vector(None))


def concat_shape(c: InferenceContext) -> None:
    sizes = [c.value(c.dim(c.with_rank(c.input(i), 1), 0)) for i in range(c.num_inputs() - 1)]
    c.set_output(0, c.vector(sum(sizes) if min(sizes) >= 0 else None))


def merge_shape(c: InferenceContext) -> None:
    c.set_output(0, c.unknown_shape())
    c.set_output(1, c.scalar())


def make_registry() -> OpRegistry:
    """A registry with a few ops as TensorFlow declares them, and some to test with."""
    registry = OpRegistry()

    def op(name: str, inputs: str, outputs: str, attrs: str, shape_fn=unknown_shape, **flags):
        split = [
            [spec.strip() for spec in specs.split(";") if spec]
            for specs in (inputs, outputs, attrs)
        ]
        register_op(
            name, inputs=split[0], outputs=split[1], attrs=split[2],
            shape_fn=shape_fn, traits=global_op_registry().traits(name), registry=registry, **flags,
        )  # fmt: skip

    op("Const", "", "output: dtype", "value: tensor; dtype: type", const_shape)
    op("Placeholder", "", "output: dtype", "dtype: type; shape: shape = {unknown_rank: true}",
       placeholder_shape)  # fmt: skip
    op("Identity", "input: T", "output: T", "T: type", unchanged_shape)
    op("AddV2", "x: T; y: T", "z: T", "T: {float, int32, int64}", broadcast_binary_op_shape)
    op("AddN", "inputs: N * T", "sum: T", "N: int >= 1; T: type")
    op("NoOp", "", "", "", no_outputs)
    op("MatMul", "a: T; b: T", "product: T",
       "transpose_a: bool = false; transpose_b: bool = false; T: {float, int32}")  # fmt: skip
    op(
        "Split",
        "split_dim: int32; value: T",
        "output: num_split * T",
        "num_split: int >= 1; T: type",
    )
    op("IdentityN", "input: T", "output: T", "T: list(type) >= 1")
    op("Two", "", "a: float; b: int32", "")
    op("Variable", "", "ref: Ref(dtype)", "dtype: type", is_stateful=True)
    op("Assign", "ref: Ref(T); value: T", "output: Ref(T)", "T: type")
    op("Old", "", "o: float", "", deprecated=(9, "use New"))
    op("Fill", "dims: Index; value: T", "output: T", "T: type; Index: {int32, int64} = DT_INT32",
       fill_shape)  # fmt: skip
    op("Shape", "input: T", "output: out_type", "T: type; out_type: {int32, int64} = DT_INT32",
       shape_shape)  # fmt: skip
    op("Rank", "input: T", "output: int32", "T: type", scalar_shape)
    op(
        "Size",
        "input: T",
        "output: out_type",
        "T: type; out_type: {int32, int64} = DT_INT32",
        scalar_shape,
    )
    op("Pack", "values: N * T", "output: T", "N: int >= 1; T: type; axis: int = 0", pack_shape)
    op("Cast", "x: SrcT", "y: DstT", "SrcT: type; DstT: type; Truncate: bool = false",
       unchanged_shape)  # fmt: skip
    op("ConcatV2", "values: N * T; axis: Tidx", "output: T",
       "N: int >= 2; T: type; Tidx: {int32, int64} = DT_INT32", concat_shape)  # fmt: skip
    op("StridedSlice", "input: T; begin: Index; end: Index; strides: Index", "output: T",
       "T: type; Index: {int32, int64}; begin_mask: int = 0; end_mask: int = 0;"
       "ellipsis_mask: int = 0; new_axis_mask: int = 0; shrink_axis_mask: int = 0",
       strided_slice_shape)  # fmt: skip
    op("Enter", "data: T", "output: T", "T: type; frame_name: string", unchanged_shape)
    op("Merge", "inputs: N * T", "output: T; value_index: int32", "T: type; N: int >= 1",
       merge_shape)  # fmt: skip
    op("NextIteration", "data: T", "output: T", "T: type", unchanged_shape)
    op("Fails", "", "o: float", "", failing_shape)
    return registry


def failing_shape(c: InferenceContext) -> None:
    [][1]  # what a careless author writes


REGISTRY = make_registry()


def parse(text: str) -> GraphDef:
    """A GraphDef in text format."""
    return text_format.Parse(text, GraphDef())


def node(name: str, op: str, *inputs: str, attrs: str = "", extra: str = "") -> str:
    """A node in text format; `attrs` like `T type: DT_FLOAT; N i: 2`."""
    written = "".join(
        f"attr {{ key: '{part.split(None, 1)[0]}' value {{ {part.split(None, 1)[1]} }} }} "
        for part in attrs.split(";")
        if part.strip()
    )
    wired = "".join(f"input: '{text}' " for text in inputs)
    return f"node {{ name: '{name}' op: '{op}' {wired}{written}{extra} }} "


def const(name: str, extra: str = "") -> str:
    """A scalar 1.0."""
    value = "value tensor { dtype: DT_FLOAT tensor_shape {} float_val: 1 }"
    return node(name, "Const", attrs=f"dtype type: DT_FLOAT; {value}", extra=extra)


def identity(name: str, *inputs: str, extra: str = "") -> str:
    """The Identity of a float."""
    return node(name, "Identity", *inputs, attrs="T type: DT_FLOAT", extra=extra)


def add(name: str, *inputs: str) -> str:
    """The sum of two floats."""
    return node(name, "AddV2", *inputs, attrs="T type: DT_FLOAT")


def colocated(*names: str) -> str:
    """The attr `_class` in text format."""
    groups = " ".join(f"s: 'loc:@{name}'" for name in names)
    return f"attr {{ key: '_class' value {{ list {{ {groups} }} }} }}"


BASE_TEXT = (
    const("a")
    + const("b")
    + add("s", "a", "b:0")
    + identity("i", "s", "^b", "^a", "^b")
    + node("n", "NoOp", "^i")
)
"""A small graph with control inputs."""
