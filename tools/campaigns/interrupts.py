"""Interrupts, as by Ctrl-C, at any moment of a use of opkernel: afterwards the process works as if there had been none.

A forked process uses opkernel: it runs, loads, traces, compiles, saves. SIGINT comes at a random event of the
interpreter, or at a random time, once or a few times. Then the same use has to give the right answer, and another use,
also on another thread; and no scope may still be entered. Nothing of opkernel is imported before the first use, or the use
was done before, so that interrupts come where it keeps things.
"""

import atexit
import importlib.util
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, ClassVar

from tools.campaigns.campaign import Finding
from tools.campaigns.interrupted_uses import USES
from tools.campaigns.interruption import HOOKS

__all__ = ["SECONDS_A_CASE", "case"]

SECONDS_A_CASE = 300
"""The first case of a use measures it."""

_ROOT = Path(__file__).parents[2]
_LIBRARIES = [
    *("numpy", "ml_dtypes", "google.protobuf", "google._upb._message", "click", "hypothesis"),
    *("asyncio", "concurrent.futures.thread", "starlette.applications"),
]
"""What is imported before: an interrupt of its import may leave a library unusable, which is not opkernel's affair."""

_ENGINES = {"run by XLA": "jax", "run by OpenVINO": "openvino"}
"""The uses that need more libraries; they come seldom, for they take long."""

_IN_SHORT = ["run", "eager"]
"""The other uses of warm processes, which have done them before."""


def case(rng: random.Random) -> str:
    """Interrupt one use."""
    use = rng.choice(_uses(seldom=rng.random() < 0.02))
    is_warm = use not in _ENGINES and rng.random() < 0.6  # threads of engines do not survive a fork
    count = rng.choice([1, 1, 2, 3])
    by_time = rng.random() < 0.25
    outcome = _Process.of(_ENGINES.get(use, "")).answer(
        use=use,
        other=rng.choice(_IN_SHORT if is_warm else _uses(seldom=False)),
        others=_IN_SHORT,
        warm=is_warm,
        ways=["time"] * count if by_time else rng.choices([*HOOKS], [2, 1], k=count),
        keeps_errors=rng.random() < 0.6,
        in_thread=rng.random() < 0.3,
        seed=rng.random(),
    )
    landed = outcome.get("landed", [])
    if "failure" in outcome:
        raise Finding("\n".join([f"{use}: {outcome['failure']}", *landed]))
    if outcome.get("of_import_system"):
        return "in Python's import system"
    kind = "warm" if is_warm else "cold"
    return f"{kind} with {len(landed)} interrupts"


def _uses(*, seldom: bool) -> list[str]:
    """The uses that need an engine, as far as these are installed, or the others."""
    if seldom:
        found = [use for use, module in _ENGINES.items() if importlib.util.find_spec(module)]
        return found or _uses(seldom=False)
    return [use for use in USES if use not in _ENGINES]


class _Process:
    """A process that answers cases; see `interrupted_process`."""

    _known: ClassVar[dict[str, "_Process"]] = {}

    def __init__(self, library: str) -> None:
        modules = [name for name in [*_LIBRARIES, library] if name and _is_installed(name)]
        self._library, self._folder = library, tempfile.TemporaryDirectory()
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", f"{__package__}.interrupted_process", *modules],
            env={
                **os.environ,
                "PYTHONPATH": f"{_ROOT / 'src'}:{_ROOT}",
                "PYTHONHASHSEED": "0",
                "TMPDIR": self._folder.name,
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )
        self._known[library] = self
        atexit.register(self.end)

    @classmethod
    def of(cls, library: str) -> "_Process":
        """The process that has imported a library."""
        return cls._known.get(library) or cls(library)

    def answer(self, **case: Any) -> dict[str, Any]:
        """The answer to a case."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            print(json.dumps(case), file=self._process.stdin, flush=True)
            answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        except BaseException:
            self.end()
            raise
        return answer

    def end(self) -> None:
        """End the process and all that come of it."""
        self._known.pop(self._library, None)
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._folder.cleanup()


def _is_installed(module: str) -> bool:
    return importlib.util.find_spec(module.partition(".")[0]) is not None
