"""Trees of aggregates: at once on one device, by device on several."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.optimization.optimizing import check_same, ops_of, optimized
from tests.runtime.dataflow.loop_builders import FLOAT, INT32, Builder

import opkernel
from opkernel import raw_ops
from opkernel.kernel import register_kernel
from opkernel.opdef import register_op, unchanged_shape

X = np.array([1e8, 1.5, -7], np.float32)


def placeholders(b, count, dtype=FLOAT):
    return [b.op("Placeholder", name=f"x{i}", dtype=dtype, shape=[3]) for i in range(count)]


def add_n(b, *tensors):
    return b.op("AddN", list(tensors))


def arity(graph):
    """How many inputs the AddNs take."""
    return sorted(len(op.inputs) for op in graph.operations if op.type == "AddN")


def test_a_chain_of_sums_is_one_and_the_same_to_the_last_bit():
    b = Builder()
    w, x, y, z = placeholders(b, 4)
    total = add_n(b, add_n(b, add_n(b, w, x), y), z)
    assert arity(optimized(b, total, "aggregates")) == [4]
    values = {
        tensor: X * number for tensor, number in zip((w, x, y, z), (1, -1, 3e-9, 7), strict=True)
    }
    check_same(b, total, values, "aggregates", rtol=0)


@pytest.mark.parametrize(("dtype", "expected"), [(FLOAT, [2, 2]), (INT32, [3])])
def test_only_integers_are_summed_in_another_order(dtype, expected):
    b = Builder()
    x, y, z = placeholders(b, 3, dtype)
    assert arity(optimized(b, add_n(b, x, add_n(b, y, z)), "aggregates")) == expected


def test_a_sum_that_others_need_stays():
    b = Builder()
    x, y, z = placeholders(b, 3)
    inner = add_n(b, x, y)
    total = add_n(b, inner, z)
    assert arity(optimized(b, [total, inner], "aggregates")) == [2, 2]
    assert arity(optimized(b, b.op("Mul", total, inner), "aggregates")) == [2, 2]
    assert arity(optimized(b, total, "aggregates", feeds=[inner])) == [2]


def test_a_sum_that_waits_stays():
    b = Builder()
    x, y, z = placeholders(b, 3)
    inner = b.operation("AddN", [x, y], after=[z.op]).outputs[0]
    assert arity(optimized(b, add_n(b, inner, z), "aggregates")) == [2, 2]


def test_element_wise_sums_of_one_device_stay_as_they_are():
    b = Builder()
    x, y, z = placeholders(b, 3)
    assert (
        ops_of(optimized(b, b.op("AddV2", b.op("AddV2", x, y), z), "aggregates")) == ["AddV2"] * 2
    )


@pytest.fixture(scope="module")
def largest():
    """An aggregate of a user's own, with an attr beside its list."""
    register_op(
        "LargestOfAll",
        inputs=["tensors: K * E"],
        outputs=["largest: E"],
        attrs=["K: int >= 1", "E: {float, int32}", "way: int = 0"],
        shape_fn=unchanged_shape,
        is_aggregate=True,
    )

    @register_kernel("LargestOfAll", device="CPU")
    def kernel(tensors):
        return np.maximum.reduce(tensors)

    return "LargestOfAll"


@pytest.mark.parametrize(("way", "expected"), [(0, [3]), (1, [2, 2])])
def test_aggregates_of_a_user_s_own_are_joined_where_their_attrs_are_alike(largest, way, expected):
    b = Builder()
    x, y, z = placeholders(b, 3)
    total = b.op(largest, [b.op(largest, [x, y], way=way), z])
    found = optimized(b, total, "aggregates").operations
    assert sorted(len(op.inputs) for op in found if op.type == largest) == expected
    check_same(b, total, {x: X, y: -X, z: X + 1}, "aggregates")


def parts(session, fetches, feeds):
    """The ops of each device's part, and the number of tensors that it sends."""
    metadata = opkernel.RunMetadata()
    options = opkernel.RunOptions(output_partition_graphs=True)
    values = session.run(fetches, feeds, options=options, run_metadata=metadata)
    sent = [sum(node.op == "_Send" for node in graph.node) for graph in metadata.partition_graphs]
    return values, sum(sent)


def on_devices(build, count=3):
    """A graph whose placeholder goes to each device, where `build` makes tensors of it, and its sum."""
    graph = opkernel.Graph()
    with graph.as_default():
        x = opkernel.placeholder(opkernel.float32, [3], name="x")
        total = build(graph, x)
    return graph, x, total, opkernel.SessionConfig(device_count={"CPU": count})


def spread(graph, x, combine):
    """The sum of the products of x and 1 to 6, two of them on each device."""
    terms = []
    for number in range(6):
        with graph.device(f"/cpu:{number % 3}"):
            terms.append(raw_ops.Mul(x=x, y=np.float32(number + 1)))
    with graph.device("/cpu:0"):
        return combine(terms)


def chained(terms):
    total = terms[0]
    for term in terms[1:]:
        total = raw_ops.AddV2(x=total, y=term)
    return total


@pytest.mark.parametrize("combine", [lambda terms: raw_ops.AddN(inputs=terms), chained])
def test_each_device_sends_its_own_sum_alone(combine):
    graph, x, total, config = on_devices(lambda graph, x: spread(graph, x, combine))
    sent = {}
    for optimize in (False, {"aggregates"}):
        with opkernel.Session(graph, config=config, optimize=optimize) as session:
            value, sent[bool(optimize)] = parts(session, total, {x: [1, 2, 3]})
            assert value.tolist() == [21, 42, 63]
    assert sent[False] - sent[True] == 2  # one tensor instead of two from each of two devices


def test_sums_that_broadcast_stay():
    def build(graph, x):
        with graph.device("/cpu:1"):
            terms = [raw_ops.Neg(x=x), raw_ops.Neg(x=x[:1])]
        with graph.device("/cpu:0"):
            return raw_ops.AddV2(x=raw_ops.AddV2(x=x, y=terms[0]), y=terms[1])

    graph, x, total, config = on_devices(build)
    with opkernel.Session(graph, config=config) as session:
        assert session.run(total, {x: [1, 2, 3]}).tolist() == [-1, -1, -1]


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_random_trees_of_sums_on_some_devices_give_the_same(data):
    graph, count = opkernel.Graph(), 3
    with graph.as_default():
        x = opkernel.placeholder(
            opkernel.int32, data.draw(st.sampled_from([[3], [None]])), name="x"
        )
        made = [x]
        for _ in range(data.draw(st.integers(2, 12))):
            taken = [
                data.draw(st.sampled_from(made[-5:])) for _ in range(data.draw(st.integers(2, 4)))
            ]
            with graph.device(f"/cpu:{data.draw(st.integers(0, count - 1))}"):
                kind = data.draw(st.sampled_from(["AddN", "AddN", "AddV2", "Neg"]))
                if kind == "AddN":
                    made.append(raw_ops.AddN(inputs=taken))
                elif kind == "AddV2":
                    made.append(raw_ops.AddV2(x=taken[0], y=taken[1]))
                else:
                    made.append(raw_ops.Neg(x=taken[0]))
    fetches = list(dict.fromkeys([made[-1], data.draw(st.sampled_from(made))]))
    config, values = opkernel.SessionConfig(device_count={"CPU": count}), []
    for optimize in (False, True, {"aggregates"}):
        with opkernel.Session(graph, config=config, optimize=optimize) as session:
            values.append(np.stack(session.run(fetches, {x: [1, -2, 3]})).tolist())
    assert values[0] == values[1] == values[2]
