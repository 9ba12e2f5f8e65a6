"""Several processes and threads that save to one prefix, and read it meanwhile; what a reader touches."""

import functools
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel.checkpoint import BundleWriter, CheckpointManager

SAVES = 12


def save(prefix: Path, number: int) -> None:
    with BundleWriter(prefix) as writer:
        for i in range(5):
            writer.add(f"x{i}", np.full(1000, number))


def read(prefix: Path) -> int:
    """The number that all tensors have."""
    with opkernel.load_checkpoint(prefix) as checkpoint:
        numbers = {int(value) for key in checkpoint for value in np.unique(checkpoint.get(key))}
    assert len(numbers) == 1
    return numbers.pop()


def save_text(prefix: str, number: int) -> None:
    save(Path(prefix), number)


def save_on_and_on(prefix: Path, first: int) -> None:
    for number in range(first, first + SAVES):
        save(prefix, number)


def names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


def is_whole(folder: Path) -> bool:
    """Whether nothing but one checkpoint is left."""
    index, *data = [name for name in names(folder) if name.endswith(".index")] + [
        name for name in names(folder) if ".data-" in name
    ]
    return index == "c.index" and {*names(folder)} == {index, *data} and len(data) in (1, 2)


SCRIPT = """
import sys, numpy as np
from opkernel.checkpoint import BundleWriter
prefix, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for number in range(first, first + count):
    with BundleWriter(prefix) as writer:
        for i in range(5):
            writer.add(f"x{i}", np.full(1000, number))
"""


def test_processes_that_save_to_one_prefix(tmp_path: Path) -> None:
    prefix = tmp_path / "c"
    save(prefix, 0)
    environment = {**os.environ, "PYTHONPATH": str(Path(opkernel.__file__).parents[1])}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(prefix), str(first), str(SAVES)], env=environment
        )
        for first in (100, 200)
    ]
    seen = {read(prefix)}
    while any(process.poll() is None for process in processes):
        seen.add(read(prefix))
    assert [process.wait() for process in processes] == [0, 0]
    assert read(prefix) in (100 + SAVES - 1, 200 + SAVES - 1)
    assert seen <= {0, *range(100, 100 + SAVES), *range(200, 200 + SAVES)}
    assert is_whole(tmp_path)


def test_threads_that_save_and_read(tmp_path: Path) -> None:
    prefix, errors = tmp_path / "c", []
    save(prefix, 0)

    def do(work: Any, *arguments: Any) -> None:
        try:
            work(*arguments)
        except BaseException as error:
            errors.append(error)

    def read_often() -> None:
        for _ in range(40):
            read(prefix)

    work = [(save_on_and_on, prefix, 100), (save_on_and_on, prefix, 200), (read_often,)]
    threads = [threading.Thread(target=do, args=one) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert is_whole(tmp_path)


def test_a_reader_goes_on_when_its_checkpoint_is_replaced(tmp_path: Path) -> None:
    prefix = tmp_path / "c"
    save(prefix, 1)
    with opkernel.load_checkpoint(prefix) as checkpoint:
        save(prefix, 2)
        save(prefix, 3)
        assert {int(checkpoint.get(key)[0]) for key in checkpoint} == {1}
    assert read(prefix) == 3


def test_threads_of_one_reader(tmp_path: Path) -> None:
    with BundleWriter(tmp_path / "c") as writer:
        for i in range(50):
            writer.add(f"x{i}", np.full(5000, i))
    found: dict[int, list[int]] = {}
    with opkernel.load_checkpoint(tmp_path / "c") as checkpoint:

        def read_all(number: int) -> None:
            found[number] = [int(checkpoint.get(f"x{i}").max()) for i in range(50)]

        threads = [threading.Thread(target=read_all, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == {number: [*range(50)] for number in range(4)}


def test_two_managers_of_one_directory(tmp_path: Path) -> None:
    managers = [CheckpointManager(tmp_path, max_to_keep=2) for _ in range(2)]
    for number in range(1, 6):
        managers[number % 2].save(functools.partial(save_text, number=number), number)
        assert read(tmp_path) == number


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells what a process has read")
def test_reading_a_tensor_reads_little_more(tmp_path: Path) -> None:
    def bytes_read() -> int:
        fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
        return int(fields["rchar"])

    with BundleWriter(tmp_path / "c") as writer:
        for i in range(16):
            writer.add(f"x{i}", np.full(1 << 17, i))
    before = bytes_read()
    with opkernel.load_checkpoint(tmp_path / "c") as checkpoint:
        assert checkpoint.get("x7")[0] == 7
    assert bytes_read() - before < (1 << 20) + 20_000  # of 16 MiB
