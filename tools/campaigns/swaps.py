"""Clients that never rest while versions of a model come, go and are damaged: none gets an error or a wrong answer.

64 clients ask `opkernel serve`, which joins their requests. A case changes the directory in one way and waits until the
server has told what becomes of it. The answer to a request tells the version. It has to be one that was there by the
answer, and that the server had not given up before the request.
"""

import contextlib
import functools
import http.client
import json
import math
import random
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.serving.conftest import save
from tools.campaigns.campaign import Finding
from tools.campaigns.served_models import at_end, serving_process

__all__ = ["case"]

_CLIENTS = 64


def case(rng: random.Random) -> str:
    """Change the versions once."""
    swapped = _swapped()
    change = rng.choice(
        ["a newer version", "a newer version", "the newest is gone", "a damaged version"]
    )
    if change == "the newest is gone" and len(swapped.whole) > 1:
        gone = swapped.whole.pop()
        shutil.rmtree(swapped.folder / str(gone))
        swapped.wait_for(swapped.whole[-1], "AVAILABLE")
        swapped.wait_for(gone, "END")
    elif change == "a damaged version":
        swapped.publish(is_damaged=True)
    else:
        change = "a newer version"
        swapped.publish(is_damaged=False)
    swapped.raise_finding()
    return change


class _Swapped:
    """A model whose versions change, its server and its clients.

    Attributes:
        folder: Where the versions are.
        whole: The versions that are there and can be loaded; the answers tell them.
    """

    def __init__(self) -> None:
        self._draft = Path(at_end.enter_context(tempfile.TemporaryDirectory()))
        self.folder = self._draft / "models" / "half"
        self.whole = [1]
        self._last = 1
        self._came = {1: 0.0}
        self._states: dict[int, tuple[str, float]] = {}
        self._told = threading.Condition()
        self._findings: list[str] = []
        self._latencies: list[float] = []
        self._is_over = threading.Event()
        save(self.folder / "1", 1.0)
        self._port, process = serving_process(self.folder, "--max-batch=16")
        assert process.stdout is not None
        clients = [_started(self._ask, number) for number in range(_CLIENTS)]
        _started(self._listen, process.stdout)
        at_end.callback(self._report, clients)

    def publish(self, *, is_damaged: bool) -> None:
        """Have a newer version appear at once, and wait until it serves or is refused."""
        self._last += 1
        number = self._last
        made = save(self._draft / str(number), float(number))
        if is_damaged:
            file = made / "saved_model.pb"
            file.write_bytes(file.read_bytes()[:-20])
        else:
            self.whole.append(number)
        self._came[number] = time.monotonic()
        made.rename(self.folder / str(number))
        self.wait_for(number, "END" if is_damaged else "AVAILABLE")
        if is_damaged:
            shutil.rmtree(self.folder / str(number))

    def wait_for(self, version: int, state: str) -> None:
        """Wait until the server tells a state of a version."""
        with self._told:
            if not self._told.wait_for(lambda: self._states.get(version, ("", 0))[0] == state, 15):
                raise Finding(f"version {version} is not {state}; told: {self._states}")

    def raise_finding(self) -> None:
        """Raise what went wrong for a client, if anything did."""
        if self._findings:
            raise Finding(self._findings.pop())

    def _listen(self, lines: Iterable[str]) -> None:
        for line in lines:
            _, _, version, state = line.rstrip().partition(":")[0].split(" ")
            with self._told:
                self._states[int(version)] = (state, time.monotonic())
                self._told.notify_all()

    def _ask(self, number: int) -> None:
        rng = random.Random(number)
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=15)
        with contextlib.closing(connection):
            while not self._is_over.is_set() and len(self._findings) < 10:
                try:
                    self._ask_once(connection, rng)
                except Exception as error:  # whatever it is, a request was lost
                    self._findings.append(f"client {number}: {error!r}")
                    connection.close()

    def _ask_once(self, connection: http.client.HTTPConnection, rng: random.Random) -> None:
        values = [float(rng.randrange(1000)) for _ in range(rng.choice([1, 1, 1, 3, 20]))]
        start = time.monotonic()
        connection.request("POST", "/v1/models/half:predict", json.dumps({"instances": values}))
        answer = connection.getresponse()
        text, end = answer.read(), time.monotonic()
        if answer.status != 200:
            raise Finding(f"answered by {answer.status}: {text!r}")
        predictions = json.loads(text)["predictions"]
        versions = {y - x / 2 for x, y in zip(values, predictions, strict=True)}
        (version,) = versions
        state, since = self._states.get(int(version), ("", 0.0))
        if not self._came.get(int(version), math.inf) <= end or (state == "END" and since < start):
            raise Finding(f"version {version} answered {end - start:.3f} s after the request")
        self._latencies.append(end - start)

    def _report(self, clients: list[threading.Thread]) -> None:
        self._is_over.set()
        for one in clients:
            one.join()
        found = sorted(self._latencies)
        p50, p99 = (found[len(found) * n // 100] * 1e3 for n in (50, 99))
        print(f"{len(found):,} requests of {_CLIENTS} clients: p50 {p50:.0f} ms, p99 {p99:.0f} ms")
        for text in self._findings:
            print(text)


def _started(target: Callable[[Any], None], argument: Any) -> threading.Thread:
    thread = threading.Thread(target=target, args=[argument], daemon=True)
    thread.start()
    return thread


@functools.cache
def _swapped() -> _Swapped:
    return _Swapped()
