"""Saves that are killed at any moment: the last whole checkpoint or model is always there.

A forked process saves one state after the other, and tells when each is saved. It is killed, by SIGKILL, at a random
moment of a save. What is read then is the last state that was told, or the one after it, whole.
"""

import os
import random
import select
import signal
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np
from tools.campaigns.campaign import Finding

import opkernel
from opkernel.checkpoint import merge_bundles

__all__ = ["case"]

_TENSORS = 12
_SIZE = 1 << 14
_LONGEST_S = 10.0


def case(rng: random.Random) -> str:
    """Kill one process."""
    name = rng.choice([*_WAYS])
    save, state = _WAYS[name]
    with tempfile.TemporaryDirectory() as folder:
        told = _killed(save, Path(folder), rng)
        found = state(Path(folder))
        if not told <= found <= told + 1:
            raise Finding(f"{name}: state {told} was saved, and {found} is there")
        save(Path(folder), told + 2)  # what the killed process left is in nobody's way
        if state(Path(folder)) != told + 2:
            raise Finding(f"{name}: the save after the kill is not what is read")
    return f"{name}: the {'new' if found > told else 'old'} one"


Save = Callable[[Path, int], object]


def _killed(save: Save, folder: Path, rng: random.Random) -> int:
    """Save in another process and kill it; the last state that it told."""
    receiving, sending = os.pipe()
    process = os.fork()
    if process == 0:
        _save_on_and_on(save, folder, sending)
    os.close(sending)
    wanted, told, last, duration = rng.randint(1, 3), 0, time.monotonic(), 0.01
    try:
        while told < wanted:
            told = _told(receiving, told)
            now = time.monotonic()
            last, duration = now, now - last
        time.sleep(rng.random() * 1.2 * duration)
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    told = _told(receiving, told, at_end=True)
    os.close(receiving)
    return told


def _save_on_and_on(save: Save, folder: Path, sending: int) -> None:
    """Save states 1, 2, 3, ..., until the end of the process."""
    try:
        for number in range(1, 1000):
            save(folder, number)
            os.write(sending, bytes([number]))
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def _told(receiving: int, told: int, at_end: bool = False) -> int:
    """The last state that the process told by now, or after it has told one more."""
    if not at_end and not select.select([receiving], [], [], _LONGEST_S)[0]:
        raise Finding(f"no save ended in {_LONGEST_S} s")
    data = os.read(receiving, 1000)
    if not data and not at_end:
        raise Finding("the process ended by itself")
    return data[-1] if data else told


def _values(number: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.full(_SIZE, number, np.int64)


def _state_of(arrays: list[np.ndarray[tuple[int], np.dtype[np.int64]]]) -> int:
    """The only number in some arrays."""
    numbers = {int(number) for array in arrays for number in (array.min(), array.max())}
    if len(numbers) != 1:
        raise Finding(f"a checkpoint of several states: {sorted(numbers)}")
    return numbers.pop()


def _write(prefix: Path | str, number: int) -> None:
    with opkernel.BundleWriter(prefix) as writer:
        for i in range(_TENSORS):
            writer.add(f"tensor/{i}", _values(number))


def _read(path: Path) -> int:
    with opkernel.load_checkpoint(path) as reader:
        return _state_of([reader.get(key) for key in reader if key.startswith("tensor/")])


def _save_prefix(folder: Path, number: int) -> None:
    _write(folder / "prefix", number)


def _state_of_prefix(folder: Path) -> int:
    return _read(folder / "prefix")


def _save_managed(folder: Path, number: int) -> None:
    manager = opkernel.CheckpointManager(folder / "managed", max_to_keep=2)
    manager.save(lambda prefix: _write(prefix, number), number)


def _state_of_managed(folder: Path) -> int:
    return _read(folder / "managed")


def _save_merged(folder: Path, number: int) -> None:
    parts = [str(folder / f"part{i}") for i in range(3)]
    for i, part in enumerate(parts):
        with opkernel.BundleWriter(part) as writer:
            writer.add(f"tensor/{i}", _values(number))
    merge_bundles(parts, str(folder / "merged"))


def _state_of_merged(folder: Path) -> int:
    return _read(folder / "merged")


class _Model(opkernel.Module):
    """A model whose variables all have the number of its state."""

    def __init__(self, number: int) -> None:
        self.weights = [opkernel.Variable(_values(number)) for _ in range(3)]


def _save_objects(folder: Path, number: int) -> None:
    (folder / "objects").mkdir(exist_ok=True)
    checkpoint = opkernel.Checkpoint(model=_Model(number))
    checkpoint.save_counter = opkernel.Variable(np.int64(number - 1), trainable=False)
    checkpoint.save(folder / "objects" / "ckpt")


def _state_of_objects(folder: Path) -> int:
    model = _Model(-1)
    opkernel.Checkpoint(model=model).restore(folder / "objects")
    return _state_of([one.numpy() for one in model.weights])


def _save_model(folder: Path, number: int) -> None:
    opkernel.save(_Model(number), folder / "model")


def _state_of_model(folder: Path) -> int:
    return _state_of([one.numpy() for one in opkernel.load(folder / "model").variables])


_WAYS: dict[str, tuple[Save, Callable[[Path], int]]] = {
    "a prefix": (_save_prefix, _state_of_prefix),
    "a manager": (_save_managed, _state_of_managed),
    "a merge": (_save_merged, _state_of_merged),
    "objects": (_save_objects, _state_of_objects),
    "a model": (_save_model, _state_of_model),
}
