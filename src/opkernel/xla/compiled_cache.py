"""Compiled programs on disk, by their content, so that another process need not compile them again.

The folder is `$OPKERNEL_CACHE`, by default `opkernel/xla` in the user's cache. What stands in it is code: it is used only
where it belongs to the user and nobody else may write to it. `OPKERNEL_CACHE=off` turns it off.

State: the files of the folder; the least recently used go where they take more than 1 GiB.
"""

from __future__ import annotations

import hashlib
import os
import platform
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from opkernel.checkpoint.atomic_files import write_whole
from opkernel.errors import OpError
from opkernel.logs import logger
from opkernel.xla.jax_numpy import jax

_MOST_BYTES = 1 << 30
_LEAST_S = 0.2
"""Programs that are compiled in less time are not kept."""


def compiled(lowered: Any) -> Any:
    """The executable of a lowered program: from the disk if it is there, else compiled and put there."""
    folder = _folder()
    if folder is None:
        return lowered.compile()
    path = folder / _key(lowered)
    found = _loaded(path, lowered)
    if found is not None:
        return found
    start = time.perf_counter()
    made = lowered.compile()
    if time.perf_counter() - start >= _LEAST_S:
        _store(path, made)
    return made


def _folder() -> Path | None:
    """The folder, made where it is missing; None where there is none that is safe to use."""
    named = os.environ.get("OPKERNEL_CACHE", "")
    if named == "off" or not hasattr(os, "getuid"):
        return None
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(named) if named else home / "opkernel" / "xla"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = folder.stat()
    except OSError:
        return None
    is_safe = facts.st_uid == os.getuid() and not facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if not is_safe:
        logger("opkernel.engines").warning(
            "%s is not used: others may write to it, and programs are code", folder
        )
    return folder if is_safe else None


def _key(lowered: Any) -> str:
    """A name that programs share which are the same, for the same compiler and processor."""
    versions = [jax().__version__, jax("jaxlib").__version__, platform.machine(), _processor()]
    flags = os.environ.get("XLA_FLAGS", "")
    text = "\n".join([*versions, flags, lowered.as_text()])
    return hashlib.sha256(text.encode()).hexdigest()


def _processor() -> str:
    """What tells processors apart that run different instructions."""
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as facts:
        return next((line for line in facts if line.startswith(("flags", "Features"))), "")
    return platform.processor()


def _loaded(path: Path, lowered: Any) -> Any:
    """The executable of a file; None where there is none, or it is none."""
    try:
        content = path.read_bytes()
        os.utime(path)
    except OSError:
        return None
    tree = jax("jax.tree_util")
    arguments = tree.tree_structure(lowered.args_info)
    results = tree.tree_structure(lowered.out_info)
    load = jax("jax.experimental.serialize_executable").deserialize_and_load
    try:
        return load(content, arguments, results)
    except Exception as error:  # damaged, or of another build: it is compiled again
        logger("opkernel.engines").info("%s is not used: %s", path, error)
        with suppress(OSError):
            path.unlink()
        return None


def _store(path: Path, made: Any) -> None:
    """Write an executable; what cannot be written is left out."""
    serialize = jax("jax.experimental.serialize_executable").serialize
    try:
        content, _, _ = serialize(made)
        write_whole(os.fspath(path), content)
        _make_room(path.parent)
    except (OpError, OSError, ValueError, TypeError) as error:
        logger("opkernel.engines").info("A program is not kept on disk: %s", error)


def _make_room(folder: Path) -> None:
    """Remove the files that were not used for longest, where all together are too large."""
    found = sorted(
        ((one.stat(), one) for one in folder.iterdir()), key=lambda entry: -entry[0].st_mtime
    )
    total = 0
    for facts, one in found:
        total += facts.st_size
        if total > _MOST_BYTES:
            one.unlink(missing_ok=True)
