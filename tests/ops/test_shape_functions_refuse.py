"""Whatever a shape function is told, it answers or refuses with an OpError; nothing else leaves it."""

import random

import numpy as np
import pytest

from opkernel.errors import OpError
from opkernel.opdef import (
    InferenceContext,
    ShapeHandle,
    global_op_registry,
    in_out_types_for_node,
    run_shape_fn,
    validate_node_def,
)
from opkernel.ops.loader import all_op_names
from opkernel.proto import AttrValue, NodeDef, OpDef, TensorShapeProto
from opkernel.types import DataType

DRAWS = 12
SIZES = [0, 1, 2, 3, 4, 7, None, None, 2**40]
TYPES = [1, 2, 3, 7, 9, 10, 14, 19, 20, 21]


def draw_attr(rng: random.Random, attr: OpDef.AttrDef) -> AttrValue:
    """A value of the attr's type, one that the op allows mostly."""
    kind = attr.type.removeprefix("list(").removesuffix(")")
    allowed = attr.allowed_values.list
    if attr.HasField("default_value") and rng.random() < 0.5:
        return attr.default_value
    value = AttrValue()
    if attr.type.startswith("list("):
        value.list.SetInParent()
        for _ in range(rng.choice([0, 1, 2, 3, 4, 5])):
            one = draw_one(rng, kind, allowed, 0)
            field = one.WhichOneof("value")
            if field is not None and field != "list":
                item = getattr(one, field)
                items = getattr(value.list, field)
                items.append(item) if not hasattr(item, "CopyFrom") else items.add().CopyFrom(item)
        return value
    return draw_one(rng, kind, allowed, int(attr.minimum) if attr.has_minimum else 0)


def draw_one(
    rng: random.Random, kind: str, allowed: AttrValue.ListValue, minimum: int
) -> AttrValue:
    value = AttrValue()
    if kind == "type":
        value.type = rng.choice(list(allowed.type) or TYPES)
    elif kind == "int":
        value.i = max(minimum, rng.choice([-1, 0, 1, 2, 3, 4, 2**31, -(2**40)]))
    elif kind == "string":
        value.s = rng.choice(list(allowed.s) or [b"", b"NHWC", b"NCHW", b"SAME", b"ab,b->a", b"x"])
    elif kind == "bool":
        value.b = rng.random() < 0.5
    elif kind == "float":
        value.f = rng.choice([0.0, 1.5, -2.0, float("nan"), float("inf")])
    elif kind == "shape":
        value.shape.CopyFrom(draw_shape_proto(rng))
    elif kind == "tensor":
        value.tensor.dtype = 1
        value.tensor.tensor_shape.CopyFrom(TensorShapeProto())
        value.tensor.float_val.append(1.0)
    elif kind == "func":
        value.func.name = "f"
    return value


def draw_shape_proto(rng: random.Random) -> TensorShapeProto:
    sizes = [rng.choice([0, 1, 2, 3, -1]) for _ in range(rng.randrange(5))]
    return TensorShapeProto(
        unknown_rank=rng.random() < 0.2, dim=[TensorShapeProto.Dim(size=size) for size in sizes]
    )


def draw_shape(rng: random.Random) -> ShapeHandle:
    if rng.random() < 0.15:
        return ShapeHandle()
    return InferenceContext.make_shape([rng.choice(SIZES) for _ in range(rng.randrange(6))])


def draw_tensor(rng: random.Random, dtype: DataType) -> np.ndarray | None:
    """A value for an input, not always of a shape that makes sense."""
    if rng.random() < 0.3 or dtype.base.numpy_dtype.hasobject:
        return None
    shape = rng.choice([(), (), (1,), (2,), (3,), (4,), (0,), (2, 2)])
    values = [rng.choice([-(2**31), -3, -1, 0, 1, 2, 3, 100]) for _ in range(int(np.prod(shape)))]
    with np.errstate(all="ignore"):
        return np.array(values, np.int64).astype(dtype.base.numpy_dtype).reshape(shape)


def draw_node(rng: random.Random, op_def: OpDef) -> NodeDef:
    node = NodeDef(name="n", op=op_def.name)
    for attr in op_def.attr:
        node.attr[attr.name].CopyFrom(draw_attr(rng, attr))
    return node


def infer(rng: random.Random, registration) -> None:
    op_def = registration.op_def
    node = draw_node(rng, op_def)
    inputs, _ = in_out_types_for_node(node, op_def)
    node.input.extend(f"x{i}" for i in range(len(inputs)))
    validate_node_def(node, op_def)
    handles = [
        [(draw_shape(rng), rng.choice([DataType.DT_FLOAT, DataType.DT_INT32]))]
        if rng.random() < 0.5
        else None
        for _ in inputs
    ]
    tensors = [draw_tensor(rng, dtype) for dtype in inputs]
    context = InferenceContext(
        op_def,
        node,
        [draw_shape(rng) if t is None else InferenceContext.make_shape(t.shape) for t in tensors],
        tensors,
        [draw_shape(rng) if rng.random() < 0.3 else None for _ in inputs],
        handles,
    )
    run_shape_fn(registration, context)
    for index in range(context.num_outputs()):
        assert context.output(index) is not None


def all_ops():
    """The ops of the catalogue; other tests register their own."""
    known = global_op_registry().get_op_registration_data()
    with_shapes = {data.op_def.name for data in known if data.shape_inference_fn is not None}
    return sorted(with_shapes & all_op_names())


@pytest.mark.parametrize("initial", sorted({name.lstrip("_")[0] for name in all_ops()}))
def test_nothing_but_op_errors(initial):
    wrong = []
    for name in (name for name in all_ops() if name.lstrip("_")[0] == initial):
        rng = random.Random(name)
        for _ in range(DRAWS):
            try:
                infer(rng, global_op_registry().look_up(name))
            except OpError:
                continue
            except Exception as error:
                wrong.append(f"{name}: {error!r}")
                break
    assert not wrong, "\n".join(wrong)
