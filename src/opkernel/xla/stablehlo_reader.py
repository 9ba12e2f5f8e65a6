"""Reads the artifact of a StableHLO module in another process.

MLIR's reader trusts its input: a damaged artifact may end the process that reads it, or keep it busy for ever. So
another process reads an artifact first, and writes the module down again. That is what this process reads.

State: the modules that were read last, by their content.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time

from opkernel.device.budget import check_time, current_budget
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.libraries import check_installed
from opkernel.runtime.session.executables import LruCache
from opkernel.xla.jax_internals import module_text, read_artifact
from opkernel.xla.jax_numpy import NEED

_LEAST_S, _BYTES_A_SECOND = 30.0, 2e6
"""So long the process may take, and longer for large artifacts."""
_COMMAND = ["-P", "-c", "from opkernel.xla.stablehlo_reader import answer; answer()"]

_modules: LruCache[bytes, bytes | str] = LruCache(64)


def module_of(artifact: bytes) -> bytes:
    """The module of an artifact, as bytecode.

    Args:
        artifact: A portable artifact of StableHLO, or a module in MLIR's bytecode or text.

    Raises:
        DeadlineExceededError: the time of this thread's budget is up.
        InvalidArgumentError: it is no such artifact, or damaged.
        UnimplementedError: JAX is not installed, or no other process can be started.
    """
    check_installed("jax", NEED)
    key = hashlib.sha256(artifact).digest()
    found = _modules.find(key) or _modules.keep(key, _read(artifact))
    if isinstance(found, str):
        raise InvalidArgumentError(found)
    return found


def text_of(artifact: bytes) -> str:
    """The module of an artifact as text, without large constants; raises as `module_of` does."""
    return module_text(module_of(artifact))


def _read(artifact: bytes) -> bytes | str:
    """The module, or what is wrong with the artifact."""
    budget = current_budget()
    left = None if budget is None else budget.seconds_left
    most = _LEAST_S + len(artifact) / _BYTES_A_SECOND
    start = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, *_COMMAND],
            input=artifact,
            capture_output=True,
            timeout=most if left is None else min(most, left),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(os.path.isabs, sys.path))},
            check=False,
        )
    except OSError as error:
        raise UnimplementedError(
            f"No process can be started that reads the module: {error.strerror}"
        ) from error
    except subprocess.TimeoutExpired:
        check_time("reading a StableHLO module")
        return f"The module is damaged: reading it takes more than {time.monotonic() - start:.0f} s"
    if done.returncode == 0:
        return done.stdout
    if done.returncode == _REFUSED:
        why = done.stderr.decode(errors="replace").strip()
        return f"The module is damaged, or was written by a newer JAX than the installed one: {why}"
    return f"The module is damaged: the process that read it ended with status {done.returncode}"


_REFUSED = 3
"""The status of a process that says what is wrong."""


def answer() -> None:
    """Read the artifact on standard input, and write its module to standard output; all that the other process does."""
    artifact = sys.stdin.buffer.read()
    report = os.dup(2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # MLIR writes to standard error, too
    try:
        module = read_artifact(artifact)
    except Exception as error:
        text = str(error).strip() or type(error).__name__
        os.write(report, text[:2000].encode(errors="replace"))
        os._exit(_REFUSED)
    with open(1, "wb") as output:
        output.write(module)
    os._exit(0)
