"""Sessions whose graphs are compiled in parts: by an engine of the test, so that no library is needed."""

import gc
import logging
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from tests.runtime.dataflow.loop_builders import FLOAT, INT32, Builder
from tests.runtime.engines.own_engine import OwnEngine, registered, wait_for_background

import opkernel
from opkernel import raw_ops
from opkernel.engines import clusters_of
from opkernel.errors import InvalidArgumentError, NotFoundError, UnimplementedError
from opkernel.graph import Graph
from opkernel.proto import ConfigProto
from opkernel.runtime.engines.late_work import BACKGROUND_THREADS, in_background

X = np.array([0.5, -1.0, 2.0], np.float32)


def chain():
    """exp(-x), written as text and read again, times tanh(x) in the middle: two clusters."""
    with Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype=opkernel.float32, shape=None, name="x")
        a = raw_ops.Exp(x=raw_ops.Neg(x=x, name="neg"), name="exp")
        text = raw_ops.AsString(input=a)
        number = raw_ops.StringToNumber(string_tensor=text, out_type=opkernel.float32)
        raw_ops.Mul(x=number, y=raw_ops.Tanh(x=x, name="tanh"), name="y")
    return graph


def expected(x):
    return np.exp(-x) * np.tanh(x)


def run(session, x=X):
    return session.run(["y:0", "exp:0"], {"x:0": x})


def check(session, x=X):
    y, exp = run(session, x)
    np.testing.assert_allclose(y, expected(x), rtol=1e-4)
    np.testing.assert_allclose(exp, np.exp(-x), rtol=1e-6)


def run_until(session, holds):
    """Run steps until something holds; each gives right values."""
    for _ in range(3000):
        check(session)
        if holds():
            return
        threading.Event().wait(0.01)  # for what is compiled meanwhile
    pytest.fail("it never holds")


def test_clusters_are_compiled_once_for_each_signature():
    with registered(OwnEngine()) as engine, opkernel.Session(chain(), jit="own!") as session:
        check(session)
        check(session)
        assert engine.compiled == [[("parameter", (3,))], [("parameter", (3,))] * 2]
        assert engine.runs == 4
        check(session, np.ones((2, 2), np.float32))
        assert engine.compiled[2:] == [[("parameter", (2, 2))], [("parameter", (2, 2))] * 2]


def test_without_jit_nothing_is_compiled():
    with registered(OwnEngine()) as engine, opkernel.Session(chain()) as session:
        check(session)
    assert not engine.compiled


def test_the_environment_chooses_the_engine(monkeypatch):
    monkeypatch.setenv("OPKERNEL_JIT", "own!")
    with registered(OwnEngine()) as engine:
        with opkernel.Session(chain()) as session:
            check(session)
        assert engine.compiled
        engine.compiled.clear()
        with opkernel.Session(chain(), jit="off") as session:
            check(session)
        assert not engine.compiled


def test_functions_called_on_arrays_follow_the_environment(monkeypatch):
    monkeypatch.setenv("OPKERNEL_JIT", "own!")

    @opkernel.function
    def f(x):
        return raw_ops.Exp(x=raw_ops.Neg(x=x))

    with registered(OwnEngine()) as engine:
        np.testing.assert_allclose(f(X), np.exp(-X), rtol=1e-6)
    assert engine.compiled == [[("parameter", (3,))]]


@pytest.mark.parametrize("jit", ["openvin", "none", "AUTO"])
def test_an_unknown_engine_is_refused_with_the_names_that_there_are(jit):
    with pytest.raises(InvalidArgumentError, match="jit must be one of off, auto, openvino, xla"):
        opkernel.Session(Graph(), jit=jit)


def test_an_engine_that_is_not_installed_says_so():
    engine = OwnEngine()
    engine.is_installed = False
    with registered(engine), pytest.raises(UnimplementedError, match="needs a library"):
        opkernel.Session(chain(), jit="own!")


def test_what_cannot_be_compiled_runs_on_the_cpu_and_is_told_once(caplog):
    engine = OwnEngine()
    engine.fails = True
    caplog.set_level(logging.WARNING, "opkernel.engines")
    with registered(engine), opkernel.Session(chain(), jit="own!") as session:
        for _ in range(3):
            check(session)
    assert len(caplog.messages) == 2  # clusters
    assert "own does not compile cluster_" in caplog.messages[0]
    assert "own cannot" in caplog.messages[0]
    assert len(engine.compiled) == 2  # it is not tried again


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("takes_calls", [False, True])
def test_kernels_compute_a_call_that_must_be_compiled_and_cannot_be(lazy, takes_calls, caplog):
    graph, y = call_that_must_be_compiled()
    engine = OwnEngine(ops=CALLS if takes_calls else ())
    engine.fails = True
    config = opkernel.SessionConfig(jit="own!", lazy_compilation=lazy)
    with registered(engine), opkernel.Session(graph, config=config) as session:
        np.testing.assert_allclose(session.run(y, {"x:0": X}), np.exp(-X), rtol=1e-6)
    assert len(engine.compiled) == takes_calls
    assert ("own cannot" in caplog.text) == takes_calls


CALLS = ("PartitionedCall", "StatefulPartitionedCall")


def call_that_must_be_compiled():
    @opkernel.function(jit_compile=True)
    def f(x):
        return raw_ops.Exp(x=raw_ops.Neg(x=x))

    with Graph().as_default() as graph:
        y = f(raw_ops.Placeholder(dtype=opkernel.float32, shape=[3], name="x"))
    return graph, y


def test_an_engine_that_takes_no_calls_compiles_what_a_marked_function_has():
    graph, y = call_that_must_be_compiled()
    with registered(OwnEngine()) as engine, opkernel.Session(graph, jit="own!") as session:
        np.testing.assert_allclose(session.run(y, {"x:0": X}), np.exp(-X), rtol=1e-6)
    assert engine.runs == 1


def test_a_node_compiles_and_another_runs():
    config = opkernel.SessionConfig(jit="own!", lazy_compilation=True)
    with registered(OwnEngine()) as engine, opkernel.Session(chain(), config=config) as session:
        check(session)
        assert engine.runs == 2
        source = session.plan(["y:0", "exp:0"], ["x:0"]).source
        assert "XlaCompile(" in source
        assert "XlaRun(" in source
        engine.fails = True
        check(session, np.ones((2, 2), np.float32))  # by the calls
        assert engine.runs == 2


def test_a_cluster_of_many_signatures_is_compiled_no_more():
    with registered(OwnEngine()) as engine, opkernel.Session(chain(), jit="own!") as session:
        for size in range(1, 30):
            check(session, np.ones([1] * (size % 2) + [3, size], np.float32))
        assert len(engine.compiled) == 22  # of two clusters, with 11 signatures each
        runs = engine.runs
        check(session, np.ones([1, 3, 1], np.float32))  # the first one still has its program
        assert engine.runs == runs + 2


def test_each_value_of_a_known_argument_has_a_program_of_its_own():
    """Also in a loop, whose variables may be kept in one array."""

    class Filling(OwnEngine):
        def compile_time_constants(self, body):
            places = [op.edges[0] for op in body.graph.get_operations() if op.type == "Tile"]
            sizes = [op.edges[2] for op in body.graph.get_operations() if op.type == "Tile"]
            assert len(places) == len(sizes) == 1
            return frozenset({body.arg_nodes.index(sizes[0])})

    b = Builder()
    x, start = b.placeholder("x", FLOAT), b.placeholder("n", INT32)

    def turn(i, n, total, x):
        more = b.op("AddV2", n, b.constant(np.array([1], np.int32)))
        tiled = b.op("Sum", b.op("Tile", x, more), b.constant(np.array([0], np.int32)))
        return [b.op("AddV2", i, b.constant(1)), more, b.op("AddV2", total, tiled)]

    _, _, total = b.while_loop(
        lambda i, n, total, x: b.op("Less", i, b.constant(4)),
        turn,
        [b.constant(0), start, b.constant(0.0)],
        [x],
    )
    engine = Filling(ops=("Tile",))
    config = opkernel.SessionConfig(jit="own!", min_cluster_size=1)
    with registered(engine), opkernel.Session(b.graph, config=config) as session:
        for first in (0, 1, 0):
            found = session.run(total, {x: [1, 2], start: [first]})
            assert found == 3 * sum(first + 1 + number for number in range(4))


def test_small_clusters_and_levels():
    def engine_after(**options):
        with registered(OwnEngine()) as engine:
            config = opkernel.SessionConfig(jit="own!", **options)
            with opkernel.Session(chain(), config=config) as session:
                check(session)
            return engine

    assert len(engine_after(min_cluster_size=2).compiled) == 2
    assert not engine_after(min_cluster_size=3).compiled
    assert not engine_after(global_jit_level="OFF").compiled
    assert engine_after(global_jit_level="ON_1").compiled


def test_the_level_of_a_config_proto_asks_for_xla(monkeypatch):
    proto = ConfigProto()
    proto.graph_options.optimizer_options.global_jit_level = 1
    with registered(OwnEngine("xla")) as engine, opkernel.Session(chain(), config=proto) as session:
        check(session)
    assert len(engine.compiled) == 2


def test_clusters_are_formed_without_other_passes():
    with (
        registered(OwnEngine()) as engine,
        opkernel.Session(chain(), jit="own!", optimize=False) as session,
    ):
        check(session)
    assert len(engine.compiled) == 2


def test_constants_are_known_when_a_cluster_is_compiled():
    large = np.linspace(0, 1, 1000, dtype=np.float32)
    with Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype=opkernel.float32, shape=[1000], name="x")
        raw_ops.Mul(x=raw_ops.Neg(x=x), y=large, name="y")
    with registered(OwnEngine()) as engine, opkernel.Session(graph, jit="own!") as session:
        np.testing.assert_allclose(session.run("y:0", {"x:0": large}), -(large**2))
    assert engine.compiled == [[("constant", (1000,)), ("parameter", (1000,))]]


def test_fetches_inside_clusters_keep_their_names():
    with registered(OwnEngine()) as engine, opkernel.Session(chain(), jit="own!") as session:
        neg, exp, tanh = session.run(["neg:0", "exp:0", "tanh:0"], {"x:0": X})
    np.testing.assert_array_equal(neg, -X)
    np.testing.assert_allclose(exp, np.exp(-X), rtol=1e-6)
    np.testing.assert_allclose(tanh, np.tanh(X), rtol=1e-6)
    assert engine.runs


def test_fed_tensors_inside_clusters_are_taken():
    with registered(OwnEngine()), opkernel.Session(chain(), jit="own!") as session:
        assert session.run("exp:0", {"neg:0": [0.0]}).tolist() == [1.0]


def test_errors_of_nodes_beside_clusters_name_them():
    with Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype=opkernel.string, shape=[], name="x")
        number = raw_ops.StringToNumber(string_tensor=x, out_type=opkernel.float32, name="number")
        raw_ops.Exp(x=raw_ops.Neg(x=number), name="y")
    with (
        registered(OwnEngine()),
        opkernel.Session(graph, jit="own!") as session,
        pytest.raises(InvalidArgumentError) as error,
    ):
        session.run("y:0", {"x:0": b"no number"})
    assert error.value.node == "number"


def test_many_threads_share_programs():
    with registered(OwnEngine()) as engine, opkernel.Session(chain(), jit="own!") as session:
        failures = []

        def work(seed):
            try:
                for size in (1, 2, 3, 4):
                    check(session, np.random.default_rng(seed).random(size, np.float32))
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(16)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    assert not failures
    assert len(engine.compiled) == 6  # of two clusters, for 1, 2 and 4


def test_models_are_loaded_with_an_engine(tmp_path):
    class Doubling(opkernel.Module):
        def __init__(self):
            self.factor = opkernel.Variable(np.float32(2), name="factor")

        @opkernel.function(input_signature=[opkernel.TensorSpec([None], opkernel.float32)])
        def __call__(self, x):
            return raw_ops.Neg(x=raw_ops.Exp(x=x * self.factor))

    opkernel.save(Doubling(), tmp_path / "model")
    with registered(OwnEngine()) as engine:
        plain, compiled = (opkernel.load(tmp_path / "model", jit=jit) for jit in ("off", "own!"))
        np.testing.assert_allclose(plain(X), -np.exp(2 * X), rtol=1e-6)
        assert not engine.compiled
        np.testing.assert_allclose(compiled(X), -np.exp(2 * X), rtol=1e-6)
    assert engine.compiled


# auto


def is_decided(session):
    """Whether what runs further steps was chosen."""
    return bool(session.report())


@pytest.fixture
def patient(monkeypatch):
    """Steps of any length are worth a trial."""
    monkeypatch.setattr("opkernel.runtime.adaptive.shapes._SHORTEST_S", 0.0)


def test_auto_takes_no_slower_engine_than_the_plan(patient):
    engine = OwnEngine()
    engine.delay_s = 0.05
    with registered(engine), opkernel.Session(chain(), jit="auto") as session:
        run_until(session, lambda: is_decided(session))
        runs = engine.runs
        assert runs > 4  # it was tried
        for _ in range(5):
            check(session)
        assert engine.runs == runs


def test_auto_keeps_the_fastest(patient):
    slow, fast = OwnEngine("slow"), OwnEngine("fast")
    slow.delay_s = 0.05
    with registered(slow, fast), opkernel.Session(chain(), jit="auto") as session:
        run_until(session, lambda: is_decided(session))
        (found,) = session.report()
        assert found.tried.keys() == {"plan", "slow", "fast"}
        assert (found.tried["slow"] or 0) > 2 * slow.delay_s  # its two clusters
        assert found.chosen in ("plan", "fast")
        assert (found.strategy, found.steps) == ("engines", "fed [3]")
        before = slow.runs
        for _ in range(5):
            check(session)
        assert slow.runs == before


def _wait_for(event: threading.Event) -> None:
    event.wait()


def test_what_nobody_can_run_any_more_is_not_compiled():
    with registered(OwnEngine()) as engine:
        go_on = threading.Event()
        for _ in range(BACKGROUND_THREADS):
            in_background(lambda: _wait_for(go_on))
        graph = chain()
        with opkernel.Session(graph, jit="auto") as session:
            check(session)
            value = weakref.ref(
                session._runner.executables.find(["y:0", "exp:0"], ("x:0",)).program
            )
        del session
        gc.collect()
        assert value() is None  # though a trial waits
        go_on.set()
        wait_for_background()
    assert not engine.compiled


def test_programs_that_lose_a_trial_are_let_go(patient):
    class Slow(OwnEngine):
        def compile(self, body, arguments):
            program = super().compile(body, arguments)
            programs.append(weakref.ref(program))
            return program

    programs: list[weakref.ref[Any]] = []
    with registered(Slow()) as engine, opkernel.Session(chain(), jit="auto") as session:
        engine.delay_s = 0.05
        run_until(session, lambda: is_decided(session))
        gc.collect()
        assert [one() for one in programs] == [None, None]


def test_an_engine_that_is_wrong_is_dropped_and_its_node_is_named(patient, caplog):
    engine = OwnEngine()
    engine.wrong_op = "Exp"
    caplog.set_level(logging.WARNING, "opkernel.engines")
    with registered(engine), opkernel.Session(chain(), jit="auto") as session:
        run_until(session, lambda: caplog.messages)
    assert "own computes other values than the kernels of the CPU for node 'exp'" in caplog.text


def test_auto_begins_with_the_plan_and_other_shapes_stay_with_it():
    with registered(OwnEngine()) as engine, opkernel.Session(chain(), jit="auto") as session:
        check(session)
        assert not engine.runs
        for size in range(1, 12):
            check(session, np.ones(size, np.float32))
        run_until(session, lambda: is_decided(session))
        assert {shape for one in engine.compiled for _, shape in one} == {(3,)}  # the first shape


def test_an_engine_that_was_named_is_left_to_the_plan_where_it_does_not_pay(patient, caplog):
    engine = OwnEngine()
    engine.delay_s = 0.05
    caplog.set_level(logging.INFO, "opkernel.engines")
    with registered(engine), opkernel.Session(chain(), jit="own") as session:
        check(session)
        assert not engine.runs  # it is compiled beside the steps
        run_until(session, lambda: is_decided(session))
        runs = engine.runs
        assert runs > 4
        check(session)
        check(session, np.ones(7, np.float32))
        assert engine.runs == runs
    assert "kernels since step" in caplog.text


def test_an_engine_that_was_named_and_pays_compiles_for_other_shapes_too(patient, monkeypatch):
    monkeypatch.setattr("opkernel.runtime.adaptive.shapes._NAMED_MAY_TAKE", 1e9)
    with registered(OwnEngine()) as engine, opkernel.Session(chain(), jit="own") as session:
        run_until(session, lambda: is_decided(session))

        def is_compiled():
            check(session, np.ones(7, np.float32))
            return any((7,) in [shape for _, shape in one] for one in engine.compiled)

        run_until(session, is_compiled)


@pytest.mark.parametrize("how", ["own!", "OPKERNEL_DETERMINISTIC"])
def test_an_engine_that_insists_runs_from_the_first_step_on(how, monkeypatch):
    if how.isupper():
        monkeypatch.setenv(how, "1")
    engine = OwnEngine()
    engine.delay_s = 0.01
    with registered(engine), opkernel.Session(chain(), jit=how if "!" in how else "own") as session:
        for count in range(1, 20):
            check(session)
            assert engine.runs == 2 * count
    assert not session.report()


def test_auto_is_off_where_results_must_be_the_same_at_each_step(monkeypatch):
    monkeypatch.setenv("OPKERNEL_DETERMINISTIC", "1")
    with registered(OwnEngine()) as engine, opkernel.Session(chain(), jit="auto") as session:
        for _ in range(20):
            check(session)
    assert not engine.compiled


def test_auto_without_any_engine_is_the_plan():
    engine = OwnEngine()
    engine.is_installed = False
    with registered(engine), opkernel.Session(chain(), jit="auto") as session:
        run_until(session, lambda: is_decided(session))


# clusters_of


def test_graphs_are_written_before_and_after_they_are_marked(monkeypatch, tmp_path):
    monkeypatch.setenv("OPKERNEL_DUMP_CLUSTERS", str(tmp_path / "dumps"))
    with registered(OwnEngine()), opkernel.Session(chain(), jit="own!") as session:
        check(session)
    before, after = sorted((tmp_path / "dumps").iterdir())
    assert before.name.startswith("before_mark_for_compilation_")
    assert "_XlaCluster" not in before.read_text()
    marked = opkernel.load_graph(after)
    assert b"cluster" in marked.get_operation_by_name("exp").attr["_XlaCluster"].s


def test_clusters_of_a_graph_and_the_reasons_of_the_others():
    graph = chain()
    with registered(OwnEngine()) as engine:
        fetches = [graph.get_tensor_by_name("y:0")]
        found = clusters_of(graph, fetches, [graph.get_tensor_by_name("x:0")], engine=engine)
    assert [set(one.nodes) for one in found.clusters] == [{"neg", "exp"}, {"tanh", "y"}]
    assert found.outside["AsString"] == "AsString is not for own"


def test_an_engine_is_registered_once():
    with registered(OwnEngine()):
        with pytest.raises(opkernel.errors.AlreadyExistsError, match="'own' is registered"):
            opkernel.engines.register_engine(OwnEngine())
        with pytest.raises(NotFoundError, match="no engine 'owm'; perhaps you mean own"):
            opkernel.engines.engine_named("owm")


def test_work_beside_steps_gets_its_turns() -> None:
    """Imports let the interpreter's lock go thousands of times; steps would keep it for 5 ms each time."""
    seen: list[float] = []
    in_background(lambda: seen.append(sys.getswitchinterval())).result(timeout=300)
    assert seen[0] <= 1e-4
