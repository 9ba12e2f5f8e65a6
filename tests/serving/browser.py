"""Chromium without a window, told what to do over a pipe.

Source: the Chrome DevTools Protocol, domains Target, Page, Runtime and Emulation.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

__all__ = ["Browser", "executable"]

_FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --remote-debugging-pipe"
)
_START = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Starts the browser with the pipe where it looks for one."""


def executable() -> str | None:
    """The browser; None where there is none, or what has its name only tells how to install it."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path and not subprocess.run([path, "--version"], capture_output=True).returncode:
            return path
    return None


class Browser:
    """One page of a browser.

    Args:
        path: The browser.
        folder: For its files.
    """

    def __init__(self, path: str, folder: Path) -> None:
        receiving, its_sending = os.pipe()
        its_receiving, sending = os.pipe()
        ends = (its_receiving, its_sending)
        command = [path, *_FLAGS.split(), f"--user-data-dir={folder}"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, *map(str, ends), *command],
            pass_fds=ends,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in ends:
            os.close(end)
        self._sending, self._receiving = os.fdopen(sending, "wb", 0), os.fdopen(receiving, "rb")
        self._number = 0
        self._session: dict[str, str] = {}
        try:
            target = self._tell("Target.createTarget", url="about:blank")["targetId"]
            attached = self._tell("Target.attachToTarget", targetId=target, flatten=True)
        except BaseException:
            self.close()
            raise
        self._session = {"sessionId": attached["sessionId"]}

    def open(self, url: str, width: int) -> None:
        """Show a page in a window of so many pixels."""
        metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": True}
        self._tell("Emulation.setDeviceMetricsOverride", **metrics)
        self._tell("Page.navigate", url=url)

    def run(self, program: str) -> Any:
        """What the body of an asynchronous function in JavaScript returns, as JSON has it."""
        expression = f"(async () => {{ {program} }})()"
        told = self._tell(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait()
        self._sending.close()
        self._receiving.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _tell(self, method: str, **params: Any) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params, **self._session}
        self._sending.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = json.loads(self._message())
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def _message(self) -> bytes:
        found = bytearray()
        while (byte := self._receiving.read(1)) not in (b"", b"\0"):
            found += byte
        assert byte, "the browser has ended"
        return bytes(found)
