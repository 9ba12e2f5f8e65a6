"""`_ScopedAllocator` and its kin in graphs. Results and status codes are TensorFlow 2.21's for these graphs."""

from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel.errors import InternalError, InvalidArgumentError, ResourceExhaustedError
from opkernel.kernel import NEVER_FORWARD, OpKernel, register_kernel
from opkernel.opdef import attr_from_python, register_op, unchanged_shape
from opkernel.types import DataType

FLOAT = DataType.DT_FLOAT
X, Y = np.array([1, 2], np.float32), np.array([3, 4, 5], np.float32)
EXECUTORS = ["COMPILED_PLAN", "DATAFLOW"]

seen: list[Any] = []


@pytest.fixture(scope="module", autouse=True)
def ops():
    """An op with kernels that set their output in different ways."""
    register_op(
        "SetsInSomeWay",
        inputs=["x: float"],
        outputs=["y: float"],
        attrs=["way: string"],
        shape_fn=unchanged_shape,
        is_stateful=True,
    )

    @register_kernel("SetsInSomeWay", device="CPU")
    class SetsInSomeWay(OpKernel):
        def __init__(self, construction):
            super().__init__(construction)
            self.way = construction.get_attr("way")

        def compute(self, ctx):
            x = ctx.input(0)
            if self.way == "allocates":
                ctx.allocate_output(0, x.shape)[...] = -x
            elif self.way == "sets":
                ctx.set_output(0, -x)
            elif self.way == "forwards":
                y, index = ctx.forward_input_or_allocate_output([0], 0, x.shape)
                assert index == -1
                np.negative(x, out=y)
            elif self.way == "temporary":
                attr = ctx.output_alloc_attr(0)
                y = ctx.allocate_temp(FLOAT, x.shape, attr)
                np.negative(x, out=y)
                ctx.set_output(0, y)
            elif self.way == "twice":
                ctx.allocate_output(0, x.shape)
                ctx.allocate_output(0, x.shape)
            seen.append((ctx.params.forward_from, ctx.output_alloc_attr(0).scope_id))


def set_pairs(operation, attr, values):
    operation.set_attr(attr, attr_from_python(values, "list(int)"))


def scoped(
    shapes=((2,), (3,)),
    *,
    ops=("Neg", "Neg"),
    ids=(11, 12),
    calls=2,
    shape=(32,),
    waits=True,
    reshape=False,
    reshaped=None,
    split=None,
    between=lambda tensor: tensor,
    way="",
):
    """Two tensors in one array, that array, and what a Split makes of both."""
    graph = opkernel.Graph()
    with graph.as_default():
        inputs = [opkernel.placeholder(FLOAT, [None], name=name) for name in "xy"]
        named = {"sa_name": "sa", "id": 10}
        allocator = graph.create_op(
            "_ScopedAllocator",
            [],
            name="sa",
            attrs={
                "T": FLOAT,
                "shapes": shapes,
                "shape": shape,
                "expected_call_count": calls,
                **named,
            },
        )
        parts = []
        for op, tensor, scope_id in zip(ops, inputs, ids, strict=True):
            attrs = {"way": way} if op == "SetsInSomeWay" else {}
            with graph.control_dependencies([allocator] if waits else []):
                node = graph.create_op(op, [tensor], name=f"of_{tensor.op.name}", attrs=attrs)
            if scope_id:
                set_pairs(node, "_scoped_allocator", [0, scope_id])
            parts.append(node.outputs[0])
        concat = graph.create_op(
            "_ScopedAllocatorConcat",
            [allocator.outputs[0], parts],
            name="concat",
            attrs={"shape": reshaped or shape, "reshape": reshape, **named},
        )
        parted = graph.create_op(
            "_ScopedAllocatorSplit",
            [between(concat.outputs[0]), parts],
            name="split",
            attrs={"shapes": split or shapes, **named},
        )
    return graph, [concat.outputs[0], *parted.outputs]


def run(built, executor="", **options):
    graph, fetches = built
    with opkernel.Session(graph, executor_type=executor, **options) as session:
        first = session.run(fetches, {"x:0": X, "y:0": Y})
        second = session.run(fetches, {"x:0": X, "y:0": Y})
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)
    return first


@pytest.mark.parametrize("options", [{}, {"optimize": False}, {"memory_limit_bytes": 1 << 20}])
@pytest.mark.parametrize("executor", EXECUTORS)
def test_outputs_are_slices_of_one_array(executor, options):
    whole, first, second = run(scoped(), executor, **options)
    assert whole.shape == (32,)
    assert whole[:2].tolist() == first.tolist() == [-1, -2]
    assert whole[16:19].tolist() == second.tolist() == [-3, -4, -5]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("op", ["Identity", "Relu", "StopGradient", "Square"])
def test_any_kernel_gives_a_slice_also_one_that_passes_its_input_on(op, executor):
    whole, first, _ = run(scoped(ops=(op, "Neg")), executor)
    assert whole[:2].tolist() == first.tolist() == ([1, 4] if op == "Square" else [1, 2])


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("way", ["allocates", "sets", "forwards", "temporary"])
def test_kernels_learn_of_the_scope_and_may_set_their_output_as_they_like(way, executor):
    seen.clear()
    whole, first, _ = run(scoped(ops=("SetsInSomeWay", "Neg"), way=way), executor)
    assert whole[:2].tolist() == first.tolist() == [-1, -2]
    assert seen == [([NEVER_FORWARD], 11)] * 2


def test_a_field_that_a_kernel_allocates_twice_is_refused():
    with pytest.raises(InternalError, match=r"SetsInSomeWay.*allocate_output.*more than once"):
        run(scoped(ops=("SetsInSomeWay", "Neg"), way="twice", calls=4))


def test_the_array_is_reshaped_where_that_is_asked_for():
    whole, *_ = run(scoped(reshaped=(4, 8), reshape=True))
    assert whole.shape == (4, 8)
    assert whole[0, :2].tolist() == [-1, -2]
    with pytest.raises(
        InvalidArgumentError, match=r"has shape \[32\], .* is \[4, 8\], without reshape"
    ):
        run(scoped(reshaped=(4, 8)))
    with pytest.raises(InvalidArgumentError, match="num elements 32 is not >= to expected 40"):
        run(scoped(reshaped=(4, 10), reshape=True))


def test_a_split_gives_tensors_of_its_shapes_alone():
    with pytest.raises(InvalidArgumentError, match=r"Input 2 has shape \[3\], .* says \[4\]"):
        run(scoped(split=((2,), (4,))))


@pytest.mark.parametrize("executor", EXECUTORS)
def test_what_is_computed_in_place_changes_the_slices(executor):
    """As CollectiveReduce is, between Concat and Split, in graphs of TensorFlow's optimizer."""

    def doubled(tensor):
        node = tensor.graph.create_op("Mul", [tensor, np.float32(2)], name="doubled")
        set_pairs(node, "_forward_input", [0, 0])
        return node.outputs[0]

    _, first, second = run(scoped(between=doubled), executor)
    assert first.tolist() == [-2, -4]
    assert second.tolist() == [-6, -8, -10]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_only_arrays_of_scoped_allocators_are_computed_in_place(executor):
    graph = opkernel.Graph()
    with graph.as_default():
        x = opkernel.placeholder(FLOAT, [2], name="x")
        kept = opkernel.constant([1.0, 1.0])
        node = graph.create_op("Mul", [kept, x], name="in_place")
        set_pairs(node, "_forward_input", [0, 0])
    with opkernel.Session(graph, executor_type=executor) as session:
        for _ in range(2):
            assert session.run([node.outputs[0], kept], {x: X})[0].tolist() == [1, 2]


WRONG = {
    "in no scope": (
        {"ids": (0, 12)},
        InvalidArgumentError,
        "input 1 from node of_x to node concat",
    ),
    "of another size": (
        {"shapes": ((2,), (4,))},
        ResourceExhaustedError,
        r"OOM when allocating tensor with shape\[3\] and type float by allocator sa_field_1",
    ),
    "of one scope": (
        {"ids": (11, 11)},
        ResourceExhaustedError,
        "request for 12 bytes from field 0",
    ),
    "of a scope that there is not": (
        {"ids": (11, 14)},
        InternalError,
        "Failed to find instance 14",
    ),
    "after the expected calls": ({"calls": 1}, InternalError, "Failed to find instance"),
    "of another shape": ({"shape": (33,)}, InvalidArgumentError, r"shape is \[33\].*take \[32\]"),
}


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_told(wrong, executor):
    options, error, message = WRONG[wrong]
    with pytest.raises(error, match=message):
        run(scoped(**options), executor)


def test_strings_have_no_scoped_allocator():
    graph = opkernel.Graph()
    attrs = {"T": DataType.DT_STRING, "shapes": [[2]], "shape": [2], "sa_name": "sa", "id": 1}
    attrs["expected_call_count"] = 1
    node = graph.create_op("_ScopedAllocator", [], name="sa", attrs=attrs)
    with opkernel.Session(graph) as session, pytest.raises(InvalidArgumentError, match="string"):
        session.run(node.outputs[0])


def test_pairs_are_checked():
    graph, fetches = scoped()
    set_pairs(graph.get_operation_by_name("of_x"), "_scoped_allocator", [1, 11])
    with pytest.raises(InvalidArgumentError, match=r"_scoped_allocator .* holds \[1, 11\]"):
        run((graph, fetches))


def test_nothing_of_a_step_stays():
    graph, fetches = scoped(calls=3)
    with opkernel.Session(graph) as session:
        session.run(fetches, {"x:0": X, "y:0": Y})
        (device,) = session._devices.mgr.all
    assert device.scoped_allocator_mgr is not None
    assert not device.scoped_allocator_mgr._containers
