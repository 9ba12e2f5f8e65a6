"""A process that runs calls with an engine and without, and says what is different: a library that crashes ends it alone."""

import logging
import multiprocessing
import os
import signal
import warnings
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np
from tools.campaigns.engine_calls import EngineCall
from tools.campaigns.ways import ends_of

import opkernel
from opkernel.errors import OpError
from opkernel.proto import GraphDef

__all__ = ["Answer", "EngineChild", "EngineCrash", "answers", "different"]

_PATIENCE_S = 120.0
_IN_TIME = opkernel.RunOptions(timeout_in_ms=10_000)
"""What kernels take long for is as if they refused it."""

Array = np.ndarray[Any, Any]
Feeds = Mapping[str, Array]


class EngineCrash(Exception):
    """The process has ended, or was ended because it took too long."""


class Answer(NamedTuple):
    """How a call ended with an engine.

    Attributes:
        word: `outside` where the engine does not take it, `refused` where the kernels refuse it, `alike`, `differs`,
            `raised`.
        detail: What is different, or the error.
    """

    word: str
    detail: str = ""


class EngineChild:
    """The process; it is started when it is needed, and again after a crash."""

    def __init__(self) -> None:
        self._process: Any = None
        self._pipe: Any = None

    def ask(
        self, engine: str, call: EngineCall, rounds: Sequence[Feeds], *, frozen: bool = False
    ) -> list[Answer]:
        """What each round of feeds gives.

        Args:
            engine: The name of the engine.
            call: The call.
            rounds: The feeds.
            frozen: Whether all that is fed but the first is constant.

        Raises:
            EngineCrash: the process has not survived it.
        """
        if self._process is None:
            self._start()
        try:
            self._pipe.send(
                (engine, call.graph_def.SerializeToString(), call.feeds, rounds, frozen)
            )
            if not self._pipe.poll(_PATIENCE_S):
                self._process.kill()
            found: list[Answer] = self._pipe.recv()
        except (EOFError, ConnectionError):
            self._process.join()
            status, self._process = self._process.exitcode, None
            name = signal.Signals(-status).name if status < 0 else f"status {status}"
            raise EngineCrash(f"ended by {name}") from None
        return found

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()


def _serve(pipe: Connection) -> None:
    os.environ["OPKERNEL_CACHE"] = "off"
    warnings.simplefilter("ignore")
    logging.getLogger("opkernel.engines").setLevel(logging.ERROR)
    while True:
        engine, graph_def, feeds, rounds, frozen = pipe.recv()
        call = EngineCall(GraphDef.FromString(graph_def), feeds)
        pipe.send(answers(engine, call, rounds, frozen=frozen))


def answers(
    engine: str, call: EngineCall, rounds: Sequence[Feeds], *, frozen: bool
) -> list[Answer]:
    """What `EngineChild.ask` gives, in this process."""
    try:
        graph, called = call.graph()
    except OpError as error:
        return [Answer("refused", str(error))] * len(rounds)
    reason = opkernel.engines.engine_named(engine).refusal(called)
    if reason:
        return [Answer("outside", reason)] * len(rounds)
    fed = [*call.feeds][:1] if frozen else [*call.feeds]
    fetches: list[Any] = [tensor for op in ends_of(graph) for tensor in op.outputs]
    config = opkernel.SessionConfig(jit=f"{engine}!", min_cluster_size=1)
    with (
        opkernel.Session(graph, optimize=False) as plain,
        opkernel.Session(graph, optimize=False, config=config) as compiled,
    ):

        def one(values: Feeds) -> Answer:
            feeds = {f"{name}:0": values[name] for name in fed}
            try:
                wanted = plain.run([*fetches, called], feeds, _IN_TIME)
            except OpError as error:
                return Answer("refused", str(error))
            try:
                found = compiled.run([*fetches, called], feeds)
            except OpError as error:
                return Answer("raised", f"{type(error).__name__}: {error}")
            for index, pair in enumerate(zip(found[:-1], wanted[:-1], strict=True)):
                detail = different(*pair)
                if detail:
                    return Answer("differs", f"{fetches[index].name}: {detail}")
            return Answer("alike")

        return [one(values) for values in rounds]


_ROUNDING = {1: 0.2, 2: 2e-2, 4: 1e-3, 8: 1e-6}
"""How far numbers may be apart, by their bytes: of each, and of the largest of ordinary size."""
_ORDINARY = 1e4
_LEAST = 1e-3
"""Results may be as far apart as if the largest were this: near a zero of a function all digits are rounded."""


def different(found: Any, wanted: Any) -> str:
    """What is different in a result, but for rounding and for less than the least normal number."""
    one, other = np.asarray(found), np.asarray(wanted)
    if one.dtype != other.dtype or one.shape != other.shape:
        return f"{one.dtype}{list(one.shape)} for {other.dtype}{list(other.shape)}"
    if one.dtype == object or not one.size:
        return ""
    for field in (one.dtype.names or ())[:1]:  # quantised numbers
        one, other = one[field], other[field]
    close = one == other
    if one.dtype.kind in "fcV":
        close = _close(one, other)
    if np.all(close):
        return ""
    place = tuple(int(i) for i in np.argwhere(~close)[0])
    return f"{one[place]} for {other[place]} at {list(place)}"


def _close(one: Array, other: Array) -> Any:
    if one.dtype.kind == "c":
        parts = _close(one.real, other.real) & _close(one.imag, other.imag)
        return parts | ~(np.isfinite(one) | np.isfinite(other))  # which parts are not is open
    size = one.dtype.itemsize
    tiny = 1.2e-38 if size < 8 else 2.3e-308
    with np.errstate(all="ignore"):
        a, b = one.astype(np.float64), other.astype(np.float64)
        sizes = np.abs(b)
        ordinary = float(sizes[sizes < _ORDINARY].max(initial=0.0))
        rounding = _ROUNDING[size]
        atol = max(rounding * max(ordinary, _LEAST), tiny)
        return np.isclose(a, b, rtol=rounding, atol=atol, equal_nan=True)
