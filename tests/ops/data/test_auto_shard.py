"""Shards of pipelines for workers, by file, by data and by hint. Values and errors are TensorFlow's."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import errors, raw_ops
from opkernel.data import Dataset, FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
from opkernel.data.structure import types_and_shapes
from opkernel.device.permissions import Permissions
from opkernel.io import TFRecordWriter

COUNTS = [3, 1, 4, 0, 2]
EVEN, ODD = "00 01 02 20 21 22 23 40 41", "10"
"""The lines of the files of even and of odd numbers."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for file, count in enumerate(COUNTS):
        lines = [f"{file}{line}" for line in range(count)]
        (tmp_path / f"{file}.txt").write_text("".join(f"{line}\n" for line in lines))
        (tmp_path / f"{file}.fix").write_text("".join(lines))
        with TFRecordWriter(str(tmp_path / f"{file}.rec")) as writer:
            for line in lines:
                writer.write(line.encode())
    return tmp_path


def names(folder: Path, ending: str = "txt", count: int = 5) -> Any:
    return np.array([str(folder / f"{file}.{ending}") for file in range(count)], object)


def sharded(
    dataset: Dataset, workers: int, index: int, policy: int, num_replicas: int = 2
) -> Dataset:
    variant = raw_ops.AutoShardDataset(
        input_dataset=dataset.variant_tensor,
        num_workers=workers,
        index=index,
        auto_shard_policy=policy,
        num_replicas=num_replicas,
        **types_and_shapes(dataset.element_spec),
    )
    return Dataset(variant, dataset.element_spec)


def texts(dataset: Dataset) -> str:
    def text(element: Any) -> str:
        if isinstance(element, tuple):
            return ",".join(map(text, element))
        if np.ndim(element):
            return "+".join(map(text, element))
        value = element if isinstance(element, bytes) else np.asarray(element).item()
        return value.decode() if isinstance(value, bytes) else str(value)

    return " ".join(map(text, dataset))


def lines(folder: Path) -> Dataset:
    return TextLineDataset(names(folder))


BY_FILE: dict[str, tuple[Callable[[Path], Dataset], list[str]]] = {
    "text": (lines, [EVEN, ODD]),
    "records": (lambda f: TFRecordDataset(names(f, "rec")), [EVEN, ODD]),
    "fixed length": (lambda f: FixedLengthRecordDataset(names(f, "fix"), 2), [EVEN, ODD]),
    "stages above": (
        lambda f: lines(f).map(lambda x: x).repeat(2).batch(4).prefetch(1),
        ["00+01+02+20 21+22+23+40 41+00+01+02 20+21+22+23 40+41", "10+10"],
    ),
    "interleaved": (
        lambda f: Dataset.list_files(str(f / "*.txt"), shuffle=False).interleave(
            TextLineDataset, cycle_length=2, block_length=2
        ),
        ["00 01 20 21 02 22 23 40 41", ODD],
    ),
    "shuffle of names": (
        lambda f: Dataset.from_tensor_slices(names(f)).shuffle(5, seed=7).flat_map(TextLineDataset),
        ["20 21 22 23 40 41 00 01 02", ODD],
    ),
    "two shuffles of names": (
        lambda f: (
            Dataset.from_tensor_slices(names(f))
            .shuffle(2, seed=1)
            .map(lambda x: x)
            .shuffle(5, seed=5)
            .flat_map(TextLineDataset)
        ),
        ["00 01 02 40 41 20 21 22 23", ODD],
    ),
    "names from patterns": (
        lambda f: (
            Dataset.from_tensor_slices([str(f / "*.txt")])
            .flat_map(lambda pattern: Dataset.list_files(pattern, shuffle=False))
            .interleave(TextLineDataset, cycle_length=2)
        ),
        ["00 20 01 21 02 22 23 40 41", ODD],
    ),
    "concatenated": (
        lambda f: lines(f).concatenate(TFRecordDataset(names(f, "rec"))),
        [f"{EVEN} {EVEN}", f"{ODD} {ODD}"],
    ),
    "itself twice": (
        lambda f: (lambda one: one.concatenate(one))(lines(f)),
        [f"{EVEN} {EVEN}", f"{ODD} {ODD}"],
    ),
}


@pytest.mark.parametrize("policy", [0, 1])
@pytest.mark.parametrize("case", BY_FILE)
def test_files_are_dealt_to_workers(folder: Path, case: str, policy: int) -> None:
    make, expected = BY_FILE[case]
    assert [texts(sharded(make(folder), 2, index, policy)) for index in range(2)] == expected


BY_DATA: dict[str, tuple[Callable[[Path], Dataset], str]] = {
    "stage that may need all elements": (
        lambda f: lines(f).take_while(lambda x: opkernel.not_equal(x, "?")),
        "01 10 21 23 41",
    ),
    "no files": (lambda f: Dataset.range(5), "1 3"),
    "generator": (
        lambda f: Dataset.from_generator(
            lambda: range(5), output_signature=opkernel.TensorSpec([], opkernel.int32)
        ),
        "1 3",
    ),
    "the reader's names are no dataset": (
        lambda f: Dataset(
            raw_ops.TextLineDataset(filenames=names(f), compression_type="", buffer_size=0),
            opkernel.TensorSpec([], opkernel.string),
        ),
        "01 10 21 23 41",
    ),
    "files, then a part without": (
        lambda f: Dataset.zip((lines(f), Dataset.range(9))),
        "",  # TensorFlow has sharded the files before it finds the range, and shards what is left
    ),
}


@pytest.mark.parametrize("case", BY_DATA)
def test_elements_are_dealt_where_there_are_no_files(folder: Path, case: str) -> None:
    make, expected = BY_DATA[case]
    assert texts(sharded(make(folder), 2, 1, 0)) == expected
    with pytest.raises(errors.NotFoundError):
        sharded(make(folder), 2, 1, 1)


@pytest.mark.parametrize("policy", [0, 1, 2])
def test_each_worker_needs_a_file_or_an_element(folder: Path, policy: int) -> None:
    few: Dataset = Dataset.range(2) if policy == 2 else TextLineDataset(names(folder, count=2))
    with pytest.raises(errors.InvalidArgumentError, match="not enough for the required 3 shards"):
        texts(sharded(few, 3, 0, policy))
    assert texts(sharded(few, 3, 2, policy)) == ""


def test_one_worker_reads_all(folder: Path) -> None:
    for policy in range(4):
        assert texts(sharded(lines(folder), 1, 0, policy)) == "00 01 02 10 20 21 22 23 40 41"


def test_later_passes_have_the_order_that_they_have_without_shards() -> None:
    numbers = Dataset.range(5).shuffle(3, seed=5).repeat(2)
    plain = texts(Dataset.range(5).shuffle(3, seed=5).repeat(2)).split()
    assert texts(sharded(numbers, 2, 0, 2)).split() == plain[::2]


def test_batches_for_replicas_are_split_before_they_are_dealt() -> None:
    batches = Dataset.range(16).batch(8).rebatch(4)
    assert texts(sharded(batches, 2, 1, 2, num_replicas=4)) == "2+3 6+7 10+11 14+15"
    with pytest.raises(errors.InvalidArgumentError, match="num_replicas"):
        sharded(batches, 2, 1, 2, num_replicas=0)


def test_hints() -> None:
    hinted = Dataset.range(7).shard(-1, -1)
    assert texts(sharded(hinted.map(lambda x: x * 2).batch(2), 3, 1, 3)) == "2+8"
    assert texts(sharded(Dataset.range(7), 3, 1, 3)) == "0 1 2 3 4 5 6"
    with pytest.raises(errors.FailedPreconditionError, match="hint"):
        texts(hinted)
    with pytest.raises(errors.InvalidArgumentError, match="shards"):
        texts(Dataset.range(7).shard(-2, 0))


def test_shards_open_only_the_files_that_the_pipeline_may(folder: Path) -> None:
    graph = opkernel.Graph()
    with graph.as_default():
        opkernel.identity(TextLineDataset(names(folder)).variant_tensor, name="made")
    graph_def = graph.as_graph_def()

    def first(permissions: Permissions) -> Any:
        with opkernel.Graph().as_default() as loaded:
            elements: Any = opkernel.import_graph_def(
                graph_def, return_elements=["made:0"], permissions=permissions
            )
            spec = opkernel.TensorSpec([], opkernel.string)
            total = sharded(Dataset(elements[0], spec), 2, 1, 1).reduce(
                np.int64(0), lambda s, x: s + 1
            )
        return opkernel.Session(loaded).run(total)

    assert first(Permissions(read=[folder])) == 1
    with pytest.raises(errors.PermissionDeniedError):
        first(Permissions())
