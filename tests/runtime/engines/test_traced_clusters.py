"""Traced steps of sessions with engines: what runs is what is recorded, and a cluster is one row of the profile."""

import json
import logging
from typing import Any

import numpy as np
import pytest
from tests.runtime.engines.own_engine import OwnEngine, registered

import opkernel
from opkernel import raw_ops
from opkernel.engines import OperationTime
from opkernel.graph import Graph
from opkernel.proto import RunMetadata
from opkernel.runtime.traces import profile_of, write_chrome_trace

X = np.array([0.5, -1.0, 2.0], np.float32)
TRACED = opkernel.RunOptions(trace_level=opkernel.RunOptions.FULL_TRACE)


class MeasuringEngine(OwnEngine):
    """An engine whose programs say that each operation took a microsecond; `Tanh` is fused into `Exp`."""

    def compile(self, body, arguments):
        program = super().compile(body, arguments)

        class Measuring:
            resource_updates = ()
            prepared = 0

            def run(self, inputs):
                return program.run(inputs)

            def prepare_to_measure(self):
                Measuring.prepared += 1

            def run_measured(self, inputs):
                assert Measuring.prepared
                results, updates = program.run(inputs)
                times = [
                    OperationTime("neg", "own word", 1e-6),
                    OperationTime("fast", "jump", 2e-6),
                ]
                return results, updates, times

        return Measuring()


def chain():
    """exp(-x), and its square as text."""
    with Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype=opkernel.float32, shape=None, name="x")
        y = raw_ops.Exp(x=raw_ops.Neg(x=x, name="neg"), name="exp")
        raw_ops.AsString(input=raw_ops.Mul(x=y, y=y, name="mul"), name="text")
    return graph


def traced(session, fetches, feeds):
    metadata = RunMetadata()
    values = session.run(fetches, feeds, TRACED, metadata)
    return values, metadata.step_stats


@pytest.mark.parametrize("engine", [OwnEngine(), MeasuringEngine()], ids=["plain", "measuring"])
def test_a_cluster_is_one_row_with_its_operations(engine):
    with registered(engine), opkernel.Session(chain(), jit="own!") as session:
        for _ in range(2):
            text, stats = traced(session, "text:0", {"x:0": X})
        np.testing.assert_allclose(text.astype(np.float32), np.exp(-2 * X), rtol=1e-4)
        profile = profile_of(stats)
    (cluster,) = [row for row in profile.nodes if row.is_cluster]
    assert (cluster.op, cluster.calls, cluster.output_bytes) == ("own", 1, X.nbytes)
    assert {row.op for row in profile.nodes} == {"own", "AsString"}
    assert sum(row.seconds for row in profile.nodes) == pytest.approx(profile.seconds)
    assert sum(row.seconds for row in profile.ops) == pytest.approx(profile.seconds)
    assert profile.seconds <= profile.step_seconds
    found: list[Any] = [(part.name, part.op, part.seconds) for part in cluster.parts]
    if isinstance(engine, MeasuringEngine):
        assert found == [("fast", "jump", pytest.approx(2e-6)), ("neg", "Neg", pytest.approx(1e-6))]
    else:
        assert found == [("neg", "Neg", 0), ("exp", "Exp", 0), ("mul", "Mul", 0)]


def test_a_trace_shows_the_operations_in_the_cluster(tmp_path):
    with registered(MeasuringEngine()), opkernel.Session(chain(), jit="own!") as session:
        _, stats = traced(session, "text:0", {"x:0": X})
    write_chrome_trace(stats, tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    slices = {event["name"]: event for event in events if event["ph"] == "X"}
    assert slices["Neg"]["args"]["node"].endswith("/neg")
    ends = {name: one["ts"] + one["dur"] for name, one in slices.items()}
    assert slices["own"]["ts"] <= slices["Neg"]["ts"]
    assert ends["Neg"] <= slices["jump"]["ts"] + 1e-3
    assert ends["jump"] <= ends["own"] + 1e-3
    assert "AsString" in slices


def test_what_the_engine_cannot_compile_is_not_called_by_its_name():
    engine = OwnEngine()
    engine.fails = True
    with registered(engine), opkernel.Session(chain(), jit="own!") as session:
        _, stats = traced(session, "text:0", {"x:0": X})
    assert {"Neg", "Exp", "Mul", "AsString"} <= {row.op for row in profile_of(stats).nodes}
    assert not any(row.is_cluster for row in profile_of(stats).nodes)


def big():
    """Work of which `auto` does not think that it is too short."""
    with Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype=opkernel.float32, shape=None, name="x")
        y = x
        for _ in range(20):
            y = raw_ops.Exp(x=raw_ops.Neg(x=y))
        raw_ops.AsString(input=raw_ops.Max(input=y, axis=[0]), name="text")
    return graph


class Fast(OwnEngine):
    """An engine that is faster than the kernels: it has computed everything before."""

    def __init__(self):
        super().__init__(ops=("Neg", "Exp", "Max"))

    def compile(self, body, arguments):
        program, known = super().compile(body, arguments), list[Any]()

        class Remembering:
            resource_updates = ()

            def run(self, inputs):
                if not known:
                    known.append(program.run(inputs))
                return known[0]

        return Remembering()


def test_auto_says_what_it_did_and_traced_steps_run_what_it_chose(caplog):
    caplog.set_level(logging.INFO, "opkernel.engines")
    values = {"x:0": np.linspace(0, 1, 100_000, dtype=np.float32)}
    with registered(Fast()), opkernel.Session(big(), jit="auto") as session:
        before = session.plan("text:0", ["x:0"]).source
        assert "Launch" not in before
        steps = session.warm_up("text:0", values)
        assert steps
        (finding,) = [one for one in session.report() if one.strategy == "engines"]
        assert (finding.chosen, {*finding.tried}) == ("own", {"plan", "own"})
        assert finding.since <= steps
        line = finding.what_engines_took
        assert line.startswith("auto: own ")
        assert line.endswith(f"own since step {finding.since}")
        assert ", kernels " in line
        assert [line in message for message in caplog.messages] == [True]
        assert session.plan("text:0", ["x:0"]).source != before
        assert session.plan("text:0", ["x:0"], [(7,)]).source == before
        _, stats = traced(session, "text:0", values)
        assert {row.op for row in profile_of(stats).nodes} == {"own", "AsString"}
        assert session.warm_up("text:0", values) == 0


def test_steps_with_effects_do_not_warm_a_session_up():
    with Graph().as_default() as graph:
        variable = raw_ops.VariableV2(dtype=opkernel.float32, shape=[], name="v")
        raw_ops.Assign(ref=variable, value=np.float32(0), name="init")
        raw_ops.AssignAdd(ref=variable, value=np.float32(1), name="add")
        raw_ops.Identity(input=variable, name="read")
        raw_ops.RandomUniform(shape=[2], dtype=opkernel.float32, name="random")
    with opkernel.Session(graph) as session:
        session.run("init")
        assert session.warm_up("add:0") is None
        assert session.warm_up("random:0") is None
        assert session.warm_up("read:0") is not None
        assert session.run("read:0") == 0
