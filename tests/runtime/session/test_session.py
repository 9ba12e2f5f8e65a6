"""Sessions: fetches, feeds, pruning, callables, errors, threads."""

import gc
import time
import traceback
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

import opkernel
from opkernel.errors import (
    CancelledError,
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    ResourceExhaustedError,
)
from opkernel.graph import Graph
from opkernel.kernel import OpKernel, global_kernel_registry, register_kernel
from opkernel.opdef import OpRegistry, register_op, unknown_shape
from opkernel.proto import GraphDef
from opkernel.types import DataType

FLOAT = DataType.DT_FLOAT


def floats(*values: float) -> np.ndarray[Any, Any]:
    return np.array(values, np.float32)


class Pair(NamedTuple):
    """A form that fetches may have."""

    first: Any
    second: Any


@pytest.fixture
def graph() -> Graph:
    """x -> double = x + x -> squared = double * double; y is an unconnected placeholder."""
    graph = Graph()
    x = graph.create_op("Placeholder", [], name="x", attrs={"dtype": FLOAT, "shape": [None]})
    double = graph.create_op("AddV2", [x.outputs[0], x.outputs[0]], name="double")
    graph.create_op("Mul", [double.outputs[0], double.outputs[0]], name="squared")
    graph.create_op("Placeholder", [], name="y", attrs={"dtype": FLOAT})
    return graph


def test_run_answers_in_the_form_of_the_fetches(graph: Graph) -> None:
    fetches = {
        "a": ["double:0", ("squared:0",)],
        "b": Pair("x:0", graph.get_operation_by_name("double")),
    }
    answer = opkernel.Session(graph).run(fetches, {"x:0": [1.0, 2.0]})
    np.testing.assert_array_equal(answer["a"][0], floats(2, 4))
    np.testing.assert_array_equal(answer["a"][1][0], floats(4, 16))
    assert isinstance(answer["b"], Pair)
    assert answer["b"].second is None


def test_what_a_fetch_does_not_need_is_not_run(graph: Graph) -> None:
    session = opkernel.Session(graph)
    np.testing.assert_array_equal(session.run("double:0", {"x:0": [3.0]}), floats(6))
    with pytest.raises(InvalidArgumentError, match="must feed a value for placeholder tensor 'y'"):
        session.run("y:0")


def test_any_tensor_can_be_fed(graph: Graph) -> None:
    value = opkernel.Session(graph).run("squared:0", {"double:0": [5.0]})
    np.testing.assert_array_equal(value, floats(25))


def test_waiting_for_a_fed_placeholder_is_waiting_for_nothing(graph: Graph) -> None:
    x = graph.get_operation_by_name("x")
    attrs = {"dtype": FLOAT, "value": np.float32(7)}
    graph.create_op("Const", [], name="seven", attrs=attrs, control_inputs=[x])
    session = opkernel.Session(graph)
    assert session.run("seven:0", {"x:0": [1.0]}) == 7
    with pytest.raises(InvalidArgumentError, match="must feed a value for placeholder tensor 'x'"):
        session.run("seven:0")


def test_a_fed_tensor_can_be_fetched_and_is_the_users_own(graph: Graph) -> None:
    fed = floats(1, 2)
    value = opkernel.Session(graph).run("x:0", {"x:0": fed})
    value[0] = 9
    np.testing.assert_array_equal(fed, floats(1, 2))


def test_a_constant_survives_what_the_user_does_to_its_fetched_value() -> None:
    graph = Graph()
    value = floats(1, 2)
    graph.create_op("Const", [], name="c", attrs={"dtype": FLOAT, "value": value})
    session = opkernel.Session(graph)
    session.run("c:0")[:] = 0
    np.testing.assert_array_equal(session.run("c:0"), value)


@pytest.mark.parametrize(
    ("feed", "message"),
    [
        ({"x:0": [[1.0]]}, r"Cannot feed value of shape \(1, 1\) for Tensor 'x:0'"),
        ({"x:0": "text"}, "x:0"),
        ({"x:0": None}, "x:0"),
    ],
)
def test_a_feed_that_does_not_fit_is_refused(
    graph: Graph, feed: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        opkernel.Session(graph).run("double:0", feed)


@pytest.mark.parametrize("fetch", ["nothing:0", "double:1", "nothing"])
def test_fetching_what_the_graph_lacks_is_an_error_that_names_it(graph: Graph, fetch: str) -> None:
    with pytest.raises((NotFoundError, InvalidArgumentError), match=fetch.split(":")[0]):
        opkernel.Session(graph).run(fetch)


def test_a_made_callable_takes_its_feeds_in_order(graph: Graph) -> None:
    call = opkernel.Session(graph).make_callable(["squared:0", "double:0"], ["x:0"])
    squared, double = call(floats(2))
    assert (squared.tolist(), double.tolist()) == ([16.0], [4.0])
    with pytest.raises(InvalidArgumentError, match="Expected 1 feed values, got 2"):
        call(1, 2)


def test_an_error_names_the_node_and_what_it_was_given() -> None:
    graph = Graph()
    a, b = (
        graph.create_op("Placeholder", [], name=n, attrs={"dtype": FLOAT}).outputs[0] for n in "ab"
    )
    graph.create_op("MatMul", [a, b], name="layer/product")
    feed = {"a:0": np.ones((2, 3), np.float32), "b:0": np.ones((5, 4), np.float32)}
    with pytest.raises(InvalidArgumentError, match="Matrix size-incompatible") as caught:
        opkernel.Session(graph).run("layer/product:0", feed)
    assert (caught.value.node, caught.value.op) == ("layer/product", "MatMul")
    assert "node 'layer/product', inputs float32[2,3], float32[5,4]" in str(caught.value)


def test_the_session_stays_usable_after_an_error(graph: Graph) -> None:
    session = opkernel.Session(graph)
    with pytest.raises(InvalidArgumentError):
        session.run("y:0")
    assert session.run("double:0", {"x:0": [1.0]}).tolist() == [2.0]


def _endless_loop() -> Any:
    return opkernel.while_loop(lambda i: i * 0 < 1, lambda i: [i + 1], [opkernel.constant(0)])[0]


def _endless_dataset(end: str) -> Any:
    numbers = opkernel.data.Dataset.range(2**62)
    ends: dict[str, Any] = {
        "filter": lambda: numbers.filter(lambda x: x < 0),
        "batch": lambda: numbers.batch(2**62),
        "skip": lambda: numbers.skip(2**62),
        "shuffle": lambda: numbers.shuffle(2**62),
    }
    return ends[end]().reduce(np.int64(0), lambda count, _: count + 1)


ENDLESS: dict[str, Any] = {
    "while loop": _endless_loop,
    **{end: partial(_endless_dataset, end) for end in ("filter", "batch", "skip", "shuffle")},
}


@pytest.mark.parametrize("executor", ["", "DATAFLOW"])
@pytest.mark.parametrize("kind", ENDLESS)
def test_close_ends_steps_that_would_go_on_for_ever(kind: str, executor: str) -> None:
    with Graph().as_default() as graph:
        endless = ENDLESS[kind]()
    session = opkernel.Session(graph, executor_type=executor)
    with ThreadPoolExecutor(1) as threads:
        step = threads.submit(session.run, endless)
        time.sleep(0.2)  # most likely it runs by then
        session.close()
        assert isinstance(step.exception(60), CancelledError | FailedPreconditionError)


def test_a_closed_session_refuses_to_run(graph: Graph) -> None:
    with opkernel.Session(graph) as session:
        double = session.make_callable("double:0", ["x:0"])
    with pytest.raises(FailedPreconditionError, match="closed Session"):
        session.run("double:0", {"x:0": [1.0]})
    with pytest.raises(FailedPreconditionError, match="closed Session"):
        double([1.0])


def test_a_tensor_over_the_memory_limit_is_refused_before_it_is_allocated() -> None:
    graph = Graph()
    int32 = DataType.DT_INT32
    dims = graph.create_op("Placeholder", [], name="dims", attrs={"dtype": int32}).outputs[0]
    value = graph.create_op("Const", [], attrs={"dtype": FLOAT, "value": np.float32(1)}).outputs[0]
    graph.create_op("Fill", [dims, value], name="fill")
    session = opkernel.Session(graph, memory_limit_bytes=1 << 20)
    assert session.run("fill:0", {"dims:0": [2]}).tolist() == [1, 1]
    with pytest.raises(ResourceExhaustedError, match="shape"):
        session.run("fill:0", {"dims:0": [1 << 30]})


def test_many_threads_may_run_one_session(graph: Graph) -> None:
    session = opkernel.Session(graph)

    def run(number: int) -> float:
        return float(session.run("squared:0", {"x:0": [number]})[0])

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(run, range(200))) == [4.0 * n * n for n in range(200)]


def test_many_threads_may_make_and_call_callables_of_one_session(graph: Graph) -> None:
    """Some call one that all share, some make their own, while others run steps."""
    with opkernel.Session(graph) as session:
        shared = session.make_callable(["squared:0", "double:0"], ["x:0"])

        def work(number: int) -> list[Any]:
            own = session.make_callable("squared:0", ["x:0"] if number % 2 else ["double:0"])
            found: list[Any] = []
            for turn in range(20):
                x = floats(number, turn)
                squared, double = shared(x)
                run = session.run("double:0", {"x:0": x})
                found.append([squared, double**2, run**2, own(x if number % 2 else double)])
            return found

        with ThreadPoolExecutor(8) as pool:
            for number, found in enumerate(pool.map(work, range(16))):
                for turn, arrays in enumerate(found):
                    for array in arrays:
                        np.testing.assert_array_equal(array, [4 * number**2, 4 * turn**2])


def test_a_kernel_that_cannot_be_constructed_fails_the_steps_that_need_it(graph: Graph) -> None:
    made = []

    class Darth(OpKernel):
        """Fails when it is constructed."""

        def __init__(self, construction: Any) -> None:
            super().__init__(construction)
            made.append(construction)
            raise InvalidArgumentError("I am your father.")

    op = register_op("Darth", inputs=["x: float"], outputs=["y: float"], shape_fn=unknown_shape)
    register_kernel(op, device="CPU")(Darth)
    graph.create_op("Darth", [graph.get_tensor_by_name("double:0")], name="vader")
    with opkernel.Session(graph) as session:
        for count in (1, 2):
            with pytest.raises(InvalidArgumentError, match=r"I am your father\.") as raised:
                session.run("vader:0", {"x:0": [1.0]})
            assert (raised.value.node, raised.value.op) == ("vader", "Darth")
            assert len(made) == count
        with pytest.raises(InvalidArgumentError, match=r"I am your father\."):
            session.make_callable("vader:0", ["x:0"])
        np.testing.assert_array_equal(session.run("squared:0", {"x:0": [3.0]}), [36])


@pytest.mark.parametrize(
    ("fetches", "feed", "message"),
    [
        ({"double:0"}, "x:0", "Fetch argument {'double:0'} has invalid type set"),
        (["double:0", {"a": bytearray(b"x")}], "x:0", "Fetch argument .* invalid type bytearray"),
        ("double:0", ["x:0"], r"Feed argument \['x:0'\] has invalid type list"),
    ],
)
def test_what_is_no_feed_or_fetch_is_named(
    graph: Graph, fetches: Any, feed: Any, message: str
) -> None:
    with opkernel.Session(graph) as session, pytest.raises(TypeError, match=message):
        session.make_callable(fetches, [feed])


@pytest.mark.parametrize("given", [3, "RunMetadata", opkernel.RunOptions(), GraphDef()])
def test_what_is_no_run_metadata_is_refused_before_the_step(graph: Graph, given: Any) -> None:
    with opkernel.Session(graph) as session:
        message = f"run_metadata must be a RunMetadata, not a {type(given).__name__}"
        with pytest.raises(TypeError, match=message):
            session.run("double:0", {"x:0": [1.0]}, run_metadata=given)
        with pytest.raises(TypeError, match=message):
            session.make_callable("double:0", ["x:0"])([1.0], run_metadata=given)


def test_the_plan_is_readable_python(graph: Graph) -> None:
    source = opkernel.Session(graph).plan("squared:0", ["x:0"]).source
    assert source.splitlines() == [
        "def plan(step, x):",
        "    double = x + x; del x",
        "    squared = double * double; del double",
        "    return (squared,)",
    ]


def test_a_node_name_cannot_become_code() -> None:
    graph = Graph()
    name = "a/raise_SystemExit.x-1"
    graph.create_op("Placeholder", [], name=name, attrs={"dtype": FLOAT})
    graph.create_op("Neg", [graph.get_tensor_by_name(f"{name}:0")], name="def")
    session = opkernel.Session(graph)
    assert session.run("def:0", {f"{name}:0": 2.0}) == -2
    assert name not in session.plan("def:0", [f"{name}:0"]).source.replace(repr(name), "")


def test_a_graph_that_was_changed_after_a_run_is_compiled_anew(graph: Graph) -> None:
    session = opkernel.Session(graph)
    assert session.run("squared:0", {"x:0": [3.0]}) == [36]
    squared = graph.get_operation_by_name("squared")
    squared.update_input(1, graph.get_tensor_by_name("x:0"))
    assert session.run("squared:0", {"x:0": [3.0]}) == [18]


def test_operations_run_and_tensors_evaluate_in_the_default_session(graph: Graph) -> None:
    double = graph.get_tensor_by_name("double:0")
    with opkernel.Session(graph).as_default() as session:
        assert double.eval({"x:0": [3.0]}).tolist() == [6]
        double.op.run({"x:0": [3.0]})
    with pytest.raises(FailedPreconditionError, match="no default session"):
        double.eval({"x:0": [3.0]})
    with session, opkernel.Session(opkernel.Graph()):
        assert double.eval({"x:0": [3.0]}).tolist() == [6]
    with pytest.raises(FailedPreconditionError, match="no default session"):
        double.eval({"x:0": [3.0]})


def test_a_graph_def_is_no_graph(graph: Graph) -> None:
    with pytest.raises(TypeError, match="graph must be a Graph, not a GraphDef"):
        opkernel.Session(graph.as_graph_def())  # type: ignore[arg-type]  # what it refuses


def test_plans_that_a_change_of_the_graph_made_stale_are_dropped(graph: Graph) -> None:
    session = opkernel.Session(graph)
    stale = weakref.ref(session.plan("squared:0", ["x:0"]).run)
    squared = graph.get_operation_by_name("squared")
    squared.update_input(1, graph.get_tensor_by_name("x:0"))
    session.plan("double:0", ["x:0"])
    gc.collect()
    assert stale() is None


def test_threads_that_ask_at_once_share_one_plan(graph: Graph) -> None:
    session = opkernel.Session(graph)
    with ThreadPoolExecutor(8) as pool:
        plans = list(pool.map(lambda _: session.plan("squared:0", ["x:0"]), range(32)))
    assert len(set(map(id, plans))) == 1


def test_feeds_of_strings_are_bytes_to_kernels() -> None:
    graph = Graph()
    text = graph.create_op("Placeholder", [], name="text", attrs={"dtype": DataType.DT_STRING})
    graph.create_op("StringLength", [text.outputs[0]], name="length")
    session = opkernel.Session(graph)
    for value in (["é", b"e"], np.array(["é", "e"]), np.array(["é", b"e"], object)):
        assert session.run("length:0", {"text:0": value}).tolist() == [2, 1]
    for wrong in (5, [None], np.array([10**12], object)):
        with pytest.raises(InvalidArgumentError, match="expected bytes or text"):
            session.run("length:0", {"text:0": wrong})


@pytest.mark.parametrize("is_async", [False, True])
def test_the_cause_and_the_traceback_of_an_error_are_kept(is_async: bool) -> None:
    def read() -> None:
        try:
            raise KeyError("key")
        except KeyError as error:
            raise DataLossError("the file is damaged") from error

    async def read_later() -> None:
        raise KeyError("key")

    ops = OpRegistry()
    register_op("TestReads", outputs=["y: float"], shape_fn=unknown_shape, registry=ops)
    kernel = read_later if is_async else read
    register_kernel("TestReads", device="CPU", op_registry=ops)(kernel)
    graph = Graph(op_registry=ops)
    graph.create_op("TestReads", [], name="reads")
    with opkernel.Session(graph) as session, pytest.raises(OpError, match="'reads'") as caught:
        session.run("reads:0")
    for registration in global_kernel_registry().registrations_for("TestReads"):
        global_kernel_registry().unregister(registration)
    cause = caught.value.__cause__
    assert isinstance(cause, KeyError)
    functions = [frame.name for frame in traceback.extract_tb(cause.__traceback__)]
    assert functions[-1] == kernel.__name__


# The program that steps come to run.


def test_variables_are_constants_in_the_program_of_later_steps_while_they_keep_their_values():
    with Graph().as_default() as graph:
        x = opkernel.raw_ops.Placeholder(dtype=FLOAT, shape=[2], name="x")
        v = opkernel.raw_ops.VarHandleOp(dtype=FLOAT, shape=[2], shared_name="v", name="v")
        opkernel.raw_ops.AssignVariableOp(resource=v, value=floats(1, 2), name="init")
        opkernel.raw_ops.AssignVariableOp(resource=v, value=floats(5, 7), name="change")
        value = opkernel.raw_ops.ReadVariableOp(resource=v, dtype=FLOAT)
        opkernel.raw_ops.Mul(x=x, y=value, name="y")
        opkernel.raw_ops.AssignAddVariableOp(resource=v, value=x, name="add")

    def ops(program) -> set[str]:
        return {op.type for op in program.request.part.operations}

    def held(program) -> list[float]:
        constants = [op for op in program.request.part.operations if op.type == "Const"]
        return opkernel.types.tensor_from_proto(constants[0].attr["value"].tensor).tolist()

    with opkernel.Session(graph) as session:
        assert "VarHandleOp" in ops(session.program("y:0", ["x:0"]))  # there is no value yet
        session.run("init")
        program = session.program("y:0", ["x:0"])
        assert ops(program) == {"Const", "Identity", "Mul"}
        assert held(program) == [1, 2]
        for _ in range(4):
            session.run("y:0", {"x:0": floats(1, 1)})
        session.run("change")
        assert held(session.program("y:0", ["x:0"])) == [5, 7]
        assert "VarHandleOp" in ops(session.program(["y:0", "add"], ["x:0"]))  # it is assigned to


@pytest.mark.parametrize(
    ("dtype", "plain", "values"),
    [(opkernel.qint8, np.int8, [42, 85, 127]), (opkernel.quint8, np.uint8, [170, 213, 255])],
)
def test_quantised_tensors_are_fetched_as_plain_integers(dtype, plain, values):
    """As TensorFlow 2.21 gives them, with these values."""
    with opkernel.Graph().as_default() as graph:
        x = opkernel.constant([1.0, 2.0, 3.0])
        q = opkernel.raw_ops.QuantizeV2(input=x, min_range=-3.0, max_range=3.0, T=dtype)
    with opkernel.Session(graph) as session:
        found, (again, scalar) = session.run(q[0]), session.run([q[0], q[0][1]])
    np.testing.assert_array_equal(found, np.array(values, plain), strict=True)
    np.testing.assert_array_equal(again, found, strict=True)
    assert scalar.dtype == plain
