"""Programs of XLA that do not end in time, and ends of processes in which they are still running."""

import subprocess
import sys
import time

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.device.budget import Budget
from opkernel.errors import DeadlineExceededError
from opkernel.graph import Graph, save_graph
from opkernel.kernel import under_budget

pytest.importorskip("jax")
pytestmark = pytest.mark.jax

X = np.ones(3, np.float32)
LONG = 2_000_000_000
"""So many turns take a minute at the least."""


def turns(x, count):
    """`x` after so many turns of a loop."""
    found = opkernel.while_loop(
        lambda i, v, n: raw_ops.Less(x=i, y=n),
        lambda i, v, n: (i + 1, raw_ops.Sin(x=v), n),
        [np.int32(0), x, count],
    )
    return found[1]


def graph_of_turns():
    with Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype=opkernel.float32, shape=[3], name="x")
        count = raw_ops.Placeholder(dtype=opkernel.int32, shape=[], name="count")
        raw_ops.Identity(input=turns(x, count), name="y")
    return graph


def run(session, count, within_ms=60_000):
    options = opkernel.RunOptions(timeout_in_ms=within_ms)
    return session.run("y:0", {"x:0": X, "count:0": count}, options)


def test_a_loop_ends_in_time():
    with opkernel.Session(graph_of_turns(), jit="xla!") as session:
        np.testing.assert_allclose(run(session, 2), np.sin(np.sin(X)), rtol=1e-6)
        with pytest.raises(DeadlineExceededError, match="xla ran the program of cluster_"):
            run(session, 4_000_000, within_ms=20)
        np.testing.assert_allclose(run(session, 2), np.sin(np.sin(X)), rtol=1e-6)


def test_a_compiled_function_ends_in_time():
    compiled = opkernel.function(turns, jit_compile=True)
    np.testing.assert_allclose(compiled(X, np.int32(2)), np.sin(np.sin(X)), rtol=1e-6)
    budget = Budget(deadline=time.monotonic() + 0.02)
    with under_budget(budget), pytest.raises(DeadlineExceededError, match="compiled a function"):
        compiled(X, np.int32(4_000_000))
    np.testing.assert_allclose(compiled(X, np.int32(2)), np.sin(np.sin(X)), rtol=1e-6)


def test_a_variable_is_neither_locked_nor_changed_by_what_is_abandoned():
    with Graph().as_default() as graph:
        handle = raw_ops.VarHandleOp(dtype=opkernel.float32, shape=[3], name="v")
        count = raw_ops.Placeholder(dtype=opkernel.int32, shape=[], name="count")
        raw_ops.AssignVariableOp(resource=handle, value=X, name="init")
        value = raw_ops.ReadVariableOp(resource=handle, dtype=opkernel.float32, name="value")
        raw_ops.AssignVariableOp(resource=handle, value=turns(value, count), name="update")
    with opkernel.Session(graph, jit="xla!") as session:
        options = opkernel.RunOptions(timeout_in_ms=60_000)
        session.run("init")
        session.run("update", {"count:0": 2}, options)
        np.testing.assert_allclose(session.run("value:0"), np.sin(np.sin(X)), rtol=1e-6)
        session.run("init")
        options = opkernel.RunOptions(timeout_in_ms=20)
        with pytest.raises(DeadlineExceededError):
            session.run("update", {"count:0": 4_000_000}, options)
        np.testing.assert_array_equal(session.run("value:0"), X)
        session.run("init")
        np.testing.assert_array_equal(session.run("value:0"), X)


ENDING = """
import sys
import numpy as np
from tests.xla.test_deadlines import graph_of_turns, run
import opkernel
session = opkernel.Session(graph_of_turns(), jit="xla!")
run(session, 2)
try:
    run(session, int(sys.argv[1]), within_ms=20)
except opkernel.errors.DeadlineExceededError:
    print("late")
sys.exit(7)
"""


@pytest.mark.parametrize("count", [LONG, 3_000_000, 8_000_000])
def test_a_process_ends_with_its_status_while_a_program_is_running(count):
    """Also if the program ends while Python does, as some of these do."""
    words = [sys.executable, "-c", ENDING, str(count)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (7, "late\n", "")


@pytest.mark.parametrize("words", [("run", "--jit", "xla!"), ("explain", "--jit", "xla")], ids=str)
def test_a_command_ends_in_time_with_one_message(words, tmp_path):
    with Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype=opkernel.float32, shape=[3], name="x")
        raw_ops.Identity(input=turns(x, np.int32(LONG)), name="y")
    save_graph(graph, tmp_path / "model.pb")
    name, *options = words
    given = ["--random"] if name == "run" else []
    command = [sys.executable, "-m", "opkernel", name, str(tmp_path / "model.pb"), *options, *given]
    done = subprocess.run(
        [*command, "--timeout", "10"], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "DEADLINE_EXCEEDED" in done.stderr
    assert "Traceback" not in done.stderr
    assert "ended" not in done.stderr  # it has ended in time, and not by the second line


def nested(depth):
    """A function that calls another one twice, which does the same, and so on: few nodes, and very many calls."""
    called = opkernel.function(lambda x: raw_ops.Sin(x=raw_ops.Exp(x=x)))
    for _ in range(depth):
        called = opkernel.function(twice(called))
    return called


def twice(inner):
    return lambda x: inner(inner(x))


@pytest.mark.parametrize("depth", [13, 40])
def test_functions_that_are_huge_when_taken_apart_run_by_kernels(depth):
    """The kernels take the other branch at once. Some are compiled, if there is time; the others are not tried."""
    with opkernel.Session(graph_of_turns(), jit="xla!") as session:
        run(session, 2)  # loads what the passes need
    with Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype=opkernel.float32, shape=[3], name="x")
        chosen = raw_ops.Placeholder(dtype=opkernel.bool, shape=[], name="chosen")
        y = opkernel.cond(chosen, lambda: nested(depth)(x), lambda: raw_ops.Neg(x=x))
        raw_ops.Identity(input=y, name="y")
    options = opkernel.RunOptions(timeout_in_ms=20_000)
    with opkernel.Session(graph, jit="xla!") as session:
        found = session.run("y:0", {"x:0": X, "chosen:0": False}, options)
        np.testing.assert_array_equal(found, -X)
