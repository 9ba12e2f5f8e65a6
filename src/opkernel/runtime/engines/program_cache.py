"""ProgramCache: programs that a library compiled, by their content: for this process, and on disk for others.

Two clusters of a process with the same content share a program, for as long as one of them exists. A program that takes long
to compile is also written to a file (`opkernel.files.cache_folder`), which other processes read. A file begins with a checksum: a library
that reads a damaged program may end the process.

State of a ProgramCache: `_live` has the programs that somebody holds, `_making` the locks of those that are being made.
The files of the folder: the least recently used are deleted where all together take too much.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import platform
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from opkernel.checkpoint.atomic_files import opened_place, replaced_file
from opkernel.files import cache_folder
from opkernel.logs import logger
from opkernel.records import dataclass
from opkernel.state.keyed_lock import KeyedLock
from opkernel.types import Array

_P = TypeVar("_P")

_LEAST_S = 0.2
"""Programs that are compiled in less time are not written to files."""
_HEADER = 64
"""The bytes of a checksum, in hexadecimal digits."""


@dataclass(frozen=True)
class Compilation(Generic[_P]):
    """How a program is made.

    Attributes:
        compile: Compiles it.
        load: Makes it from the content of a file. The memory stays valid while somebody refers to it.
        save: Gives the content of a file.
    """

    compile: Callable[[], _P]
    load: Callable[[memoryview], _P]
    save: Callable[[_P], bytes]


class ProgramCache(Generic[_P]):
    """The programs of one library; used from any thread.

    Args:
        part: The folder, in that of all caches.
        most_bytes: So much the files of the folder take at most.
    """

    def __init__(self, part: str, most_bytes: int) -> None:
        self._part, self._most_bytes = part, most_bytes
        self._forget()
        if hasattr(os, "register_at_fork"):  # a child has no thread that would give a lock back
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._live = WeakValueDictionary[str, _P]()
        self._making = KeyedLock()

    def program(self, key: str, how: Compilation[_P]) -> _P:
        """The program with a key: one of this process, one of a file, or else a new one.

        Args:
            key: A name that programs share only if they are the same, as `content_key` makes it.
            how: Makes the program.

        Raises:
            Exception: what `how.compile` raises.
        """
        with self._making.hold(key):
            found = self._live.get(key)
            if found is None:
                found = self._live[key] = self._made(key, how)
            return found

    def _made(self, key: str, how: Compilation[_P]) -> _P:
        folder = cache_folder(self._part)
        if folder is None:
            return how.compile()
        path = Path(folder, key)
        found = _loaded(path, how)
        if found is not None:
            return found
        start = time.perf_counter()
        made = how.compile()
        if time.perf_counter() - start >= _LEAST_S:
            # The step does not wait for the file; the end of the process does.
            work = partial(self._store, path, how.save, made)
            with suppress(RuntimeError):  # the process is ending, or may have no more threads
                threading.Thread(target=work, name="opkernel program cache").start()
        return made

    def _store(self, path: Path, save: Callable[[_P], bytes], made: _P) -> None:
        """Write a program to its file; one that cannot be written is left out."""
        try:
            content = save(made)
            directory, name = opened_place(os.fspath(path))
            with directory, replaced_file(directory, name) as file:
                file.write(_checksum(name, content))
                file.write(content)
            _make_room(path.parent, self._most_bytes)
        except Exception as error:  # whatever the library raises; steps need no file
            logger("opkernel.engines").info("A program is not kept on disk: %s", error)


def _loaded(path: Path, how: Compilation[_P]) -> _P | None:
    """The program of a file; None where there is no file, or a damaged one, which is deleted."""
    try:
        file = path.open("rb")
    except OSError:  # mostly, there is none
        return None
    try:
        with file:
            content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        os.utime(path)
        if content[:_HEADER] != _checksum(path.name, content[_HEADER:]):
            raise ValueError("its checksum is wrong")
        return how.load(content[_HEADER:])
    except Exception as error:  # an empty file cannot be mapped; another build of the library may refuse the content
        _delete(path, error)
        return None


def _delete(path: Path, why: Exception) -> None:
    """Delete a file that is no program."""
    logger("opkernel.engines").info("%s is not used: %s", path, why)
    with suppress(OSError):
        path.unlink()


def _checksum(name: str, content: memoryview | bytes) -> bytes:
    """The checksum of a file, which holds for the name of the file, too."""
    found = hashlib.sha256(name.encode())
    found.update(content)
    return found.hexdigest().encode()


def _make_room(folder: Path, most_bytes: int) -> None:
    """Delete the files that were not used for longest, where all together are too large."""
    found = sorted(
        ((one.stat(), one) for one in folder.iterdir()), key=lambda entry: -entry[0].st_mtime
    )
    total = 0
    for facts, one in found:
        total += facts.st_size
        if total > most_bytes:
            one.unlink(missing_ok=True)


def content_key(texts: Iterable[str], arrays: Iterable[Array] = ()) -> str:
    """A key for a program that some texts and arrays determine, on processors like this one.

    Args:
        texts: The program, the library's version, its settings.
        arrays: The elements of constants, each in order.
    """
    found = hashlib.sha256()
    for text in (platform.machine(), _processor(), *texts):
        content = text.encode()
        found.update(b"%d\n" % len(content) + content)
    for array in arrays:
        found.update(b"%d\n" % array.nbytes)
        found.update(array.reshape(-1).data)
    return found.hexdigest()


def _processor() -> str:
    """What tells processors apart that run different instructions."""
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as facts:
        return next((line for line in facts if line.startswith(("flags", "Features"))), "")
    return platform.processor()
