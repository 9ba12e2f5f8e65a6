"""Damaged checkpoints, V1 and V2: refused with the file named, or read with the values that were saved."""

import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from tools.campaigns.campaign import Finding
from tools.campaigns.damage import MUTATIONS
from tools.campaigns.messages import change_message

import opkernel
from opkernel.checkpoint.sstable import Table, TableWriter
from opkernel.errors import OpError
from opkernel.proto import BundleEntryProto, BundleHeaderProto, DecodeError, SavedTensorSlices

__all__ = ["case"]

_DATA = Path(__file__).parents[2] / "tests" / "checkpoint" / "data"


def case(rng: random.Random) -> str:
    """Read all of a checkpoint, one file of which is damaged."""
    name, file = rng.choice(
        [("v1", "v1"), ("v2", "v2.index"), ("v2", "v2.data-00000-of-00001"), ("many", "many.index")]
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        _copy(name, path)
        changes_messages = not file.startswith("v2.data") and rng.random() < 0.5
        if changes_messages:
            _change_entry(path / file, rng)
        else:
            data = (path / file).read_bytes()
            (path / file).write_bytes(rng.choice(MUTATIONS[:3])(data, rng))
        return _read(path / name, None if changes_messages else _values(name))


def _copy(name: str, folder: Path) -> None:
    """The files of a sample."""
    if name == "many":
        with opkernel.BundleWriter(folder / name) as writer:
            for key, value in _many().items():
                writer.add(key, value)
        return
    for file in _DATA.glob(f"{name}*"):
        shutil.copy(file, folder)


def _many() -> dict[str, Any]:
    return {f"layer_{i:03d}/kernel": np.full(2, i, np.int16) for i in range(60)}


_saved: dict[str, dict[str, Any]] = {}


def _values(name: str) -> dict[str, Any]:
    """The values that were saved."""
    if name not in _saved:
        with tempfile.TemporaryDirectory() as folder:
            _copy(name, Path(folder))
            with opkernel.load_checkpoint(Path(folder) / name) as reader:
                _saved[name] = {key: _comparable(reader.get(key)) for key in reader}
    return _saved[name]


def _comparable(value: Any) -> Any:
    content = value.tolist() if value.dtype == object else value.tobytes()
    return value.dtype.str, value.shape, content


def _change_entry(file: Path, rng: random.Random) -> None:
    """Change messages in a table, whose checksums stay right."""
    table = Table(str(file))
    entries = [*table]
    table.close()
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.randrange(len(entries)) if rng.random() < 0.9 else 0
        key, value = entries[at]
        entries[at] = key, _changed(file.name, key, value, rng)
    if rng.random() < 0.2:
        del entries[rng.randrange(len(entries))]
    with open(file, "wb") as output:
        writer = TableWriter(output)
        for key, value in entries:
            writer.add(key, value)
        writer.finish()


def _changed(file: str, key: bytes, value: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.1:
        return rng.choice(MUTATIONS[:3])(value, rng) if value else b"\xff"
    kind: Any = SavedTensorSlices
    if file.endswith(".index"):
        kind = BundleEntryProto if key else BundleHeaderProto
    try:
        message = kind.FromString(value)
    except DecodeError:  # it is damaged already
        return value
    change_message(message, rng)
    changed: bytes = message.SerializeToString()
    return changed


def _read(prefix: Path, expected: dict[str, Any] | None) -> str:
    """Read every tensor, in several ways; each is refused, or has its value."""
    words: set[str] = set()
    with opkernel.load_checkpoint(prefix) as reader:
        for key in reader:
            words.add(_read_one(reader, key, expected))
        repr([(one, reader.slices(one)) for one in reader])
    return "refused in part" if len(words) > 1 else words.pop() if words else "empty"


def _read_one(reader: Any, key: str, expected: dict[str, Any] | None) -> str:
    try:
        value = reader.get(key)
    except OpError as error:
        if reader.path not in error.message or key not in error.message:
            raise Finding(
                f"the message names not both {reader.path} and {key}: {error.message}"
            ) from error
        return f"a tensor: {error.code.name}"
    if expected is not None and key in expected and _comparable(value) != expected[key]:
        raise Finding(f"{key} was read as {value!r}")
    return "read"
