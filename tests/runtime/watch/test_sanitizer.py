"""A session that watches its kernels: each misdeed is named, with the node."""

import itertools

import numpy as np
import pytest

from opkernel import Graph, OpKernel, Session, register_kernel, register_op
from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.graph import graph_to_function_def
from opkernel.kernel import global_kernel_registry
from opkernel.opdef import unchanged_shape
from opkernel.types import DataType

NUMBERS = itertools.count()
X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def run():
    """Runs an op with a given kernel on a value."""
    kernels = global_kernel_registry()
    before = kernels.registrations()

    def call(kernel, *, sanitize=True, type="float", value=X, attrs=()):
        name = f"Sanitized{next(NUMBERS)}"
        register_op(
            name,
            inputs=["x: T"],
            outputs=["y: T"],
            attrs=[f"T: {{{type}}}", *attrs],
            shape_fn=unchanged_shape,
        )
        register_kernel(name, device="CPU")(kernel)
        graph = Graph()
        with graph.as_default():
            x = graph.create_op("Placeholder", attrs={"dtype": value.dtype, "shape": value.shape})
            y = graph.create_op(name, [x.outputs[0]], name="suspect").outputs[0]
        with Session(graph, sanitize=sanitize) as session:
            return session.run(y, {x.outputs[0]: value})

    yield call
    for registration in kernels.registrations():
        if registration not in before and registration.kernel_def.op.startswith("Sanitized"):
            kernels.unregister(registration)


def found(run, kernel, **options):
    with pytest.raises(InternalError, match=r"sanitizer: the kernel .*node 'suspect'") as caught:
        run(kernel, **options)
    return caught.value.message


def test_what_is_right_runs_as_without(run):
    def right(x):
        return x * 2

    class Right(OpKernel):
        def compute(self, ctx):
            y = ctx.allocate_output(0, ctx.input(0).shape)
            np.multiply(ctx.input(0), 2, out=y)

    for kernel in (right, Right):
        np.testing.assert_array_equal(run(kernel), X * 2)


def test_writing_to_an_input(run):
    def in_place(x):
        x *= 2
        return x.copy()

    def around_the_lock(x):
        x.base.setflags(write=True)
        x.base[0] = 9
        return x.copy()

    assert "in_place writes to an input: " in found(run, in_place)
    assert "around_the_lock writes to input 0" in found(run, around_the_lock, value=X.copy())


def test_types_and_shapes_that_are_not_as_declared(run):
    assert "output 0 must be float, the kernel set float64" in found(run, np.float64)
    assert "output 0 must be float, the kernel set a list" in found(run, lambda x: x.tolist())
    message = found(run, lambda x: x[:1].copy())
    assert "gives output 0 the shape [1, 3], where the shape function says [2,3]" in message


def test_strings_that_are_no_bytes(run):
    value = np.array([b"a"], object)
    message = found(run, lambda x: np.array(["a"], object), type="string", value=value)
    assert "gives output 0 with elements that are not bytes" in message


class Forgetful(OpKernel):
    """Writes the first row of its output alone."""

    def compute(self, ctx):
        y = ctx.allocate_output(0, ctx.input(0).shape)
        y[0] = ctx.input(0)[0]


@pytest.mark.parametrize(
    ("type_name", "kind"),
    [
        ("float", np.float32),
        ("double", np.float64),
        ("half", np.float16),
        ("int32", np.int32),
        ("int64", np.int64),
        ("complex64", np.complex64),
    ],
)
def test_elements_that_are_not_written(run, type_name, kind):
    message = found(run, Forgetful, type=type_name, value=np.ones((2, 3), kind))
    assert "leaves 3 of 6 elements of output 0 unwritten, the first at [1, 0]" in message


def test_strings_that_are_not_written(run):
    message = found(run, Forgetful, type="string", value=np.full((2, 3), b"", object))
    assert "leaves elements of output 0 unwritten" in message


def test_what_is_unwritten_is_poisoned_even_where_nobody_can_be_sure(run):
    result = run(Forgetful, type="uint8", value=np.ones((2, 2), np.uint8))
    assert result.tolist() == [[1, 1], [0xCB, 0xCB]]


@pytest.mark.parametrize(("place", "where"), [(-1, "before"), (6, "behind")])
def test_memory_beside_an_array(run, place, where):
    class Overrun(OpKernel):
        def compute(self, ctx):
            temp = ctx.allocate_temp(DataType.DT_FLOAT, (6,))
            block = temp
            while isinstance(block.base, np.ndarray):
                block = block.base
            start = temp.ctypes.data - block.ctypes.data
            block[start + 4 * place] = 1
            ctx.set_output(0, ctx.input(0) + 1)

    assert f"writes to the memory {where} its array float[6]" in found(run, Overrun)


def test_an_output_that_is_written_to_after_it_was_returned():
    outputs = []

    class Late(OpKernel):
        def compute(self, ctx):
            outputs.append(ctx.input(0) + 1)
            ctx.set_output(0, outputs[0])

    def meanwhile(x):  # as a thread that Late forgot to join would do
        outputs[0].fill(7)
        return x + 1

    graph = Graph()
    for name, kernel in (("SanitizedLate", Late), ("SanitizedThen", meanwhile)):
        register_op(name, inputs=["x: float"], outputs=["y: float"], shape_fn=unchanged_shape)
        register_kernel(name, device="CPU")(kernel)
    suspect = graph.create_op("SanitizedLate", [X], name="suspect")
    with graph.control_dependencies([suspect]):
        then = graph.create_op("SanitizedThen", [X])
    with pytest.raises(InternalError, match=r"before the step ended.*node 'suspect'") as caught:
        Session(graph, sanitize=True).run([then.outputs[0], suspect.outputs[0]])
    assert "the kernel Late returned output 0, and it was written to" in caught.value.message


def test_attrs_that_are_changed(run):
    class Changes(OpKernel):
        def compute(self, ctx):
            self.node_def.attr["k"].i = 2
            ctx.set_output(0, ctx.input(0) + 1)

    assert "changed the attrs of its node" in found(run, Changes, attrs=["k: int = 1"])


def test_refusals_stay_what_they_are(run):
    def refuses(x):
        raise InvalidArgumentError("not this")

    with pytest.raises(InvalidArgumentError, match="not this"):
        run(refuses)


def test_functions_of_the_graph_are_watched_too():
    def in_place(x):
        x[:] = 0
        return x

    register_op(
        "SanitizedInner", inputs=["x: float"], outputs=["y: float"], shape_fn=unchanged_shape
    )
    register_kernel("SanitizedInner", device="CPU")(in_place)
    graph, inner = Graph(), Graph()
    a = inner.create_op("Placeholder", attrs={"dtype": DataType.DT_FLOAT}, name="a").outputs[0]
    y = inner.create_op("SanitizedInner", [a], name="suspect").outputs[0]
    definition = graph_to_function_def(inner, "f", [a], [y], output_names=["y"])
    graph.function_library.add_function(definition)
    graph.create_op("f", [X], name="call")
    with pytest.raises(InternalError, match=r"in_place writes to an input.*node 'suspect'"):
        Session(graph, sanitize=True).run("call:0")


def test_a_session_without_sanitizer_does_not_pay(run):
    graph = Graph()
    with graph.as_default():
        x = graph.create_op("Placeholder", attrs={"dtype": DataType.DT_FLOAT}, name="x").outputs[0]
        graph.create_op("Relu", [x], name="y")
    plain, watched = (Session(graph, sanitize=on).plan("y:0", ["x:0"]) for on in (False, True))
    assert not plain.uses_step
    assert "step" not in plain.source.split("\n", 1)[1]
    assert watched.uses_step
