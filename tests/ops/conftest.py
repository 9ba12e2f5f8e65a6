"""`infer_op`: run the shape function of a registered op, and say where its result came from."""

import pytest

from opkernel.graph import node_def
from opkernel.opdef import (
    InferenceContext,
    ShapeHandle,
    add_defaults_to_node_def,
    global_op_registry,
    run_shape_fn,
    validate_node_def,
)


def shape(text):
    """The handle of `[2,?]` or `?`."""
    if text == "?":
        return ShapeHandle()
    sizes = text.strip("[]").split(",") if text != "[]" else []
    return InferenceContext.make_shape([None if size == "?" else int(size) for size in sizes])


def described(context, result):
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


def inferred(op, *inputs, attrs=None, constants=None, as_shapes=None, handles=None):
    """The context of a node of this op, after its shape function ran."""
    registration = global_op_registry().look_up(op)
    node = node_def("test", op, [f"in{i}" for i in range(len(inputs))], **(attrs or {}))
    add_defaults_to_node_def(node, registration.op_def)
    validate_node_def(node, registration.op_def)
    indices = range(len(inputs))
    held = [
        [(shape(text), dtype) for text, dtype in handles[i]] if i in (handles or {}) else None
        for i in indices
    ]
    context = InferenceContext(
        registration.op_def,
        node,
        [shape(text) for text in inputs],
        [(constants or {}).get(i) for i in indices],
        [shape(as_shapes[i]) if i in (as_shapes or {}) else None for i in indices],
        held,
    )
    run_shape_fn(registration, context)
    return context


@pytest.fixture
def infer_op():
    """Outputs of an op as text, joined by `;`.

    `attrs` by name as Python values, `constants` and `as_shapes` by input index, `handles` by input
    index as lists of (shape as text, DataType).
    """

    def run(op, *inputs, **known):
        context = inferred(op, *inputs, **known)
        outputs = range(context.num_outputs())
        return ";".join(described(context, context.output(i)) for i in outputs)

    return run


@pytest.fixture
def infer_held():
    """What an output of an op holds, as text like `float [2,3];int32 ?`; None if that is not known.

    Arguments as of `infer_op`.
    """

    def run(op, *inputs, output=0, **known):
        held = inferred(op, *inputs, **known).output_handle_shapes_and_types(output)
        return held and ";".join(f"{one.dtype.string} {one.shape}" for one in held)

    return run
