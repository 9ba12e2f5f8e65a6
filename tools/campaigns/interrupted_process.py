"""A process that is forked for each case of `interrupts`: `python -m tools.campaigns.interrupted_process MODULE...`.

It imports the given modules and nothing of opkernel, and reads cases, a line of JSON each. A child of the process
interrupts a use of opkernel, once or a few times, tries it again, and tries another use. The answer to a case says
where the interrupts came, and what went wrong. For a case that is `warm` the child comes from a process in which the
use was done before.
"""

import contextlib
import faulthandler
import gc
import importlib
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from tools.campaigns.interrupted_uses import USES
from tools.campaigns.interruption import HOOKS, IMPORTING, count_events, interrupt_at

_SECONDS = 60
"""How long a child may take; what is not done by then hangs."""

Message = dict[str, Any]


class _Channel:
    """Messages between two processes."""

    def __init__(self, receiving: int, sending: int) -> None:
        self._lines, self._sending = os.fdopen(receiving, "rb"), sending

    def send(self, message: Message) -> None:
        """Send a message."""
        data = memoryview(json.dumps(message).encode() + b"\n")
        while data:
            data = data[os.write(self._sending, data) :]

    def receive(self) -> Message | None:
        """The next message; None where there will be none."""
        line = self._lines.readline()
        return json.loads(line) if line else None

    def close(self) -> None:
        """Let the other process know that there will be no more."""
        self._lines.close()
        os.close(self._sending)


def _forked(work: Callable[[_Channel], object]) -> tuple[int, _Channel]:
    """A child that does some work and the channel to it."""
    down, up = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.close(down[1])
        os.close(up[0])
        try:
            work(_Channel(down[0], up[1]))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(down[0])
    os.close(up[1])
    return child, _Channel(up[0], down[1])


def _outcome(work: Callable[[], Message], channel_of: dict[str, _Channel] | None = None) -> Message:
    """The result of some work by a child, which is interrupted after a while where it asks for that."""

    def in_time(channel: _Channel) -> None:
        _send_late(channel)
        if channel_of is not None:
            channel_of["parent"] = channel
        try:
            result = work()
        except BaseException:
            result = {"failure": traceback.format_exc(limit=-30)}
        channel.send(result)

    child, channel = _forked(in_time)
    last: Message | None = None
    while (message := channel.receive()) is not None:
        if "interrupt_in" in message:
            time.sleep(message["interrupt_in"])
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGINT)
        else:
            last = message
            break
    if last is not None:
        os.kill(child, signal.SIGKILL)  # it may have threads that wait
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    channel.close()
    return last or {"failure": f"the process ended with status {status}"}


def _send_late(channel: _Channel) -> None:
    """Send where all threads are, if the work takes too long."""
    file = tempfile.TemporaryFile("w+")  # noqa: SIM115  # for as long as the process lives
    faulthandler.dump_traceback_later(_SECONDS, file=file)

    def late() -> None:
        time.sleep(_SECONDS + 1)
        file.seek(0)
        channel.send({"failure": f"it hangs\n{file.read()}"})

    threading.Thread(target=late, daemon=True).start()


class _Server:
    """Answers cases, each by a child.

    Args:
        warm: The use that this process has done before, if any.
    """

    def __init__(self, warm: str = "") -> None:
        self._warm = warm
        self._answers: dict[str, str] = {}
        self._known: dict[tuple[str, str], float] = {}
        self._of_use: dict[str, _Channel] = {}

    def serve(self, channel: _Channel) -> None:
        """Answer all cases that come."""
        while (case := channel.receive()) is not None:
            try:
                channel.send(self._answered(case))
            except _BrokenUse as error:
                channel.send({"failure": str(error)})

    def _answered(self, case: Message) -> Message:
        use = case["use"]
        case.setdefault("answers", {name: self._answer(name) for name in (use, case["other"])})
        if case["warm"] and not self._warm:
            return self._ask(use, case)
        sizes = {way: self._size(use, way) for way in set(case["ways"])}
        of_child: dict[str, _Channel] = {}
        return _outcome(lambda: _Case(case, sizes, of_child).run(), of_child)

    def _ask(self, use: str, case: Message) -> Message:
        """The answer of the process that has done the use before."""
        if use not in self._of_use:

            def do_and_serve(channel: _Channel) -> None:
                for name in {use, *case["others"]}:
                    USES[name].do(USES[name].prepare())
                    _prepared[name] = USES[name].prepare()
                gc.freeze()
                _Server(use).serve(channel)

            _, self._of_use[use] = _forked(do_and_serve)
        self._of_use[use].send(case)
        return self._of_use[use].receive() or {"failure": f"{use} does not work"}

    def _answer(self, use: str) -> str:
        """The answer of a use that is not interrupted."""
        if use not in self._answers:
            outcome = _outcome(lambda: {"answer": _done(use)})
            if "answer" not in outcome:
                raise _BrokenUse(f"{use}: {outcome['failure']}")
            self._answers[use] = outcome["answer"]
        return self._answers[use]

    def _size(self, use: str, way: str) -> float:
        """The seconds that a use takes, or how many events of a hook it has."""
        if (use, way) not in self._known:
            measure = _seconds_of if way == "time" else lambda name: _events_of(name, way)
            outcome = _outcome(lambda: {"size": measure(use)})
            if "size" not in outcome:
                raise _BrokenUse(f"{use}: {outcome['failure']}")
            self._known[use, way] = outcome["size"]
        return self._known[use, way]


class _BrokenUse(Exception):
    """A use does not work at all."""


_prepared: dict[str, Any] = {}


def _done(name: str) -> str:
    """Do a use; its answer, as text."""
    use = USES[name]
    answer = use.do(_prepared[name] if name in _prepared else use.prepare())
    with np.printoptions(precision=4, suppress=True):
        return str(answer)


def _seconds_of(name: str) -> float:
    start = time.perf_counter()
    _done(name)
    return time.perf_counter() - start


def _events_of(name: str, way: str) -> int:
    return count_events(HOOKS[way], lambda: _done(name))


class _Case:
    """A case, in its child.

    Args:
        case: The message.
        sizes: By way, how long the use takes or how many events it has.
        channels: Has the channel to the parent.
    """

    def __init__(
        self, case: Message, sizes: dict[str, float], channels: dict[str, _Channel]
    ) -> None:
        self._case, self._sizes, self._channels = case, sizes, channels
        self._rng = random.Random(case["seed"])
        self._landed: list[str] = []
        self._errors: list[BaseException] = []

    def run(self) -> Message:
        """Interrupt the use; try it again, and another one."""
        case, told = self._case, ""
        try:
            for way in case["ways"]:
                self._interrupt(way)
                if any(map(_is_of_import_system, self._errors)):
                    return {"landed": self._landed, "of_import_system": True}
                if not case["keeps_errors"]:
                    self._errors.clear()
            self._check(case["use"])
            if case["in_thread"]:
                with ThreadPoolExecutor(1) as threads:
                    threads.submit(self._check, case["other"]).result()
            else:
                self._check(case["other"])
            _check_scopes()
        except BaseException:
            told = traceback.format_exc(limit=-30)
        return {"landed": self._landed} | ({"failure": told} if told else {})

    def _interrupt(self, way: str) -> None:
        """Do the use, and interrupt it at some moment."""
        name, size = self._case["use"], self._sizes[way]
        try:
            try:
                signal.signal(signal.SIGINT, signal.default_int_handler)
                if way == "time":
                    after = self._rng.random() * 1.1 * size
                    self._channels["parent"].send({"interrupt_in": after})
                    _done(name)
                else:
                    number = self._rng.randint(1, int(size))
                    interrupt_at(HOOKS[way], number, lambda: _done(name))
            finally:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
        except BaseException as error:
            if not _is_interrupt(error):
                raise
            lines = traceback.TracebackException.from_exception(error, limit=-6).format()
            self._landed.append(f"{way}: {''.join(lines)[-2000:]}")
            self._errors.append(error)

    def _check(self, name: str) -> None:
        """Do a use, and check its answer."""
        answer, expected = _done(name), self._case["answers"][name]
        if answer != expected:
            raise AssertionError(f"{name}: {answer[:500]} instead of {expected[:500]}")


def _is_of_import_system(error: BaseException) -> bool:
    """Whether an error was raised within Python's import system, which then may be unusable."""
    frames = traceback.extract_tb(error.__traceback__)
    return frames[-1].filename == IMPORTING


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether an error is an interrupt, or comes of one."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _check_scopes() -> None:
    """Check that no block is still entered."""
    from opkernel.device import allocation, budget, intra_op
    from opkernel.graph.core import default_graph
    from opkernel.types import decoded_charge

    entered = {
        "a budget": budget.current_budget() is not None,
        "a default graph": default_graph.innermost_default() is not None,
        "one BLAS thread": bool(intra_op.one_blas_thread.blocks),
        "a charge": decoded_charge.get() is not None,
        "no collector": not gc.isenabled(),
        "threads": intra_op.intra_op_threads() != intra_op._DEFAULT_THREADS,
        "an allocator": allocation.allocation_policy()[1] is not None,
    }
    session = sys.modules.get("opkernel.runtime.session.session")
    if session is not None:
        entered["a default session"] = bool(session._default_sessions.get())
    left = [name for name, is_entered in entered.items() if is_entered]
    if left:
        raise AssertionError(f"still entered: {', '.join(left)}")


def main() -> None:
    """Answer the cases on standard input."""
    for module in sys.argv[1:]:
        importlib.import_module(module)
    gc.freeze()
    faulthandler.enable()
    channel = _Channel(0, os.dup(1))
    os.dup2(2, 1)  # what is printed is no answer
    _Server().serve(channel)


if __name__ == "__main__":
    main()
