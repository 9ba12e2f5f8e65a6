"""`infer`: run a shape function, and say which input handles the result is made of."""

from collections.abc import Callable

import pytest

from opkernel.graph import node_def
from opkernel.opdef import InferenceContext, ShapeHandle
from opkernel.proto import OpDef


def shape(text):
    """The handle of `[2,?]` or `?`."""
    if text == "?":
        return ShapeHandle()
    sizes = text.strip("[]").split(",") if text != "[]" else []
    return InferenceContext.make_shape([None if size == "?" else int(size) for size in sizes])


def make_context(inputs=(), outputs=1, attrs=None, constants=None, as_shapes=None, **options):
    """A context for shapes as text; constants and as_shapes by input index."""
    op_def = OpDef(name="Test")
    for i in range(len(inputs)):
        op_def.input_arg.add(name=f"in{i}")
    for i in range(outputs):
        op_def.output_arg.add(name=f"out{i}")
    node = node_def("test", "Test", **(attrs or {}))
    tensors = [(constants or {}).get(i) for i in range(len(inputs))]
    partial = [shape(as_shapes[i]) if i in (as_shapes or {}) else None for i in range(len(inputs))]
    return InferenceContext(op_def, node, [shape(s) for s in inputs], tensors, partial, **options)


def describe(context, result):
    """`in0` for an input's shape itself; else dims as `d0_1` where they are an input's, or sizes."""
    inputs = [context.input(i) for i in range(context.num_inputs())]
    for i, one in enumerate(inputs):
        if result is one:
            return f"in{i}"
    if result.dims is None:
        return "?"
    names = {
        id(dim): f"d{i}_{j}" for i, one in enumerate(inputs) for j, dim in enumerate(one.dims or ())
    }
    return f"[{','.join(names.get(id(dim), repr(dim)) for dim in result.dims)}]"


@pytest.fixture
def context() -> Callable[..., InferenceContext]:
    return make_context


@pytest.fixture
def infer() -> Callable[..., str]:
    """Outputs of a shape function as text, joined by `;`."""

    def run(shape_fn, *inputs, **options):
        c = make_context(inputs, **options)
        shape_fn(c)
        return ";".join(describe(c, c.output(i)) for i in range(c.num_outputs()))

    return run
