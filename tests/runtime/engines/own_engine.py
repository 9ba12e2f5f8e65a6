"""An engine that computes clusters with a session, and may be told to fail, to be wrong, or to be slow."""

import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import opkernel
from opkernel.engines import Engine, register_engine
from opkernel.errors import UnimplementedError
from opkernel.registrations import Registrations
from opkernel.runtime.engines import engine as registry
from opkernel.runtime.engines.late_work import BACKGROUND_THREADS, in_background

__all__ = ["OwnEngine", "registered", "wait_for_background"]


class OwnEngine(Engine):
    """Takes the ops that it is given."""

    min_cluster_size = 1

    def __init__(self, name="own", ops=("Neg", "Exp", "Mul", "Tanh")):
        self.name, self.ops = name, frozenset(ops)
        self.wrong_op, self.fails, self.delay_s = "", False, 0.0
        self.is_installed = True
        self.compiled, self.runs = [], 0

    def check_installed(self):
        if not self.is_installed:
            raise UnimplementedError("own needs a library")

    def refusal(self, op):
        return "" if op.type in self.ops else f"{op.type} is not for {self.name}"

    def compile(self, body, arguments):
        self.compiled.append([(one.kind, one.shape) for one in arguments])
        if self.fails:
            raise UnimplementedError("own cannot")
        return _Compiled(self, body)


class _Compiled:
    resource_updates = ()

    def __init__(self, engine, body):
        self._engine, self._body = engine, body
        self._session = opkernel.Session(body.graph, jit="off")
        graph = body.graph
        self._wrong = [op for op in graph.get_operations() if op.type == engine.wrong_op]

    def run(self, inputs):
        engine, body = self._engine, self._body
        engine.runs += 1
        time.sleep(engine.delay_s)
        feeds = dict(zip(body.inputs, inputs, strict=True))
        for op in self._wrong:
            feeds[op.outputs[0]] = self._session.run(op.outputs[0], feeds) + 1
        return self._session.run([*body.outputs], feeds), []


def wait_for_background() -> None:
    """Wait for all work that was given to the threads that compile."""
    barrier = threading.Barrier(BACKGROUND_THREADS)

    def arrive() -> None:
        barrier.wait()

    for done in [in_background(arrive) for _ in range(BACKGROUND_THREADS)]:
        done.result()


@contextmanager
def registered(*engines):
    """Have sessions know these engines alone."""
    wait_for_background()  # what earlier tests began registers engines and kernels
    known, provided = registry._engines, registry._PROVIDED
    registry._engines = Registrations("An engine")
    none: Any = SimpleNamespace(names=tuple, get={}.get)
    registry._PROVIDED = none
    try:
        for one in engines:
            register_engine(one)
        yield engines[0]
    finally:
        registry._engines = known
        registry._PROVIDED = provided
