"""`opkernel serve` as a process that ends with this one."""

import atexit
import contextlib
import os
import subprocess
import sys
from pathlib import Path

__all__ = ["at_end", "serving_process"]

_SOURCES = Path(__file__).parents[2] / "src"
_PROGRAM = "from opkernel.cli.main import main; main()"
_WITHOUT = "import sys; sys.modules.update(httptools=None, uvloop=None); "

at_end = contextlib.ExitStack()
"""What happens when this process ends."""
atexit.register(at_end.close)


def serving_process(
    models: Path, *options: str, is_plain: bool = False
) -> tuple[int, "subprocess.Popen[str]"]:
    """The port and the process of a server; its output tells what becomes of later versions.

    Args:
        models: The directory; the server has loaded what it holds.
        options: Other options of the command.
        is_plain: Whether uvicorn reads HTTP without the libraries that make it faster.
    """
    program = f"{_WITHOUT if is_plain else ''}{_PROGRAM}"
    process = subprocess.Popen(
        [sys.executable, "-c", program, "serve", str(models), "--port=0", *options],
        env={**os.environ, "PYTHONPATH": str(_SOURCES), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    at_end.callback(process.stdout.close)
    at_end.callback(process.wait)
    at_end.callback(process.terminate)
    for line in process.stdout:
        if line.startswith("serving at "):
            return int(line.rpartition(":")[2]), process
    raise RuntimeError(f"opkernel serve {models} ended")
