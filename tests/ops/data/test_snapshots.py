"""Snapshots: the first whole pass writes, later ones read, and what is half-done is not read."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import opkernel
from opkernel import errors, raw_ops
from opkernel.data import Dataset

NUMBER: dict[str, Any] = {"output_types": [opkernel.int64], "output_shapes": [[]]}


def noted(calls: list[int], count: int = 7) -> Dataset:
    """Numbers, whose computation is noted."""

    def source() -> list[int]:
        calls.append(1)
        return [*range(count)]

    spec = opkernel.TensorSpec([], opkernel.int64)
    return Dataset.from_generator(source, output_signature=spec)


def version_1(dataset: Dataset, path: Path, **attrs: Any) -> Dataset:
    made = raw_ops.SnapshotDataset(
        input_dataset=dataset.variant_tensor, path=str(path), **NUMBER, **attrs
    )
    return Dataset(made, dataset.element_spec)


def ints(dataset: Iterable[Any]) -> list[int]:
    return [int(one) for one in dataset]


@pytest.mark.parametrize("compression", ["AUTO", "GZIP", None])
def test_later_passes_read_what_the_first_has_written(
    compression: str | None, tmp_path: Path
) -> None:
    def shuffled() -> Dataset:
        return Dataset.range(20).shuffle(20, seed=4).snapshot(tmp_path, compression)

    first = ints(shuffled())
    assert sorted(first) == [*range(20)]
    assert [ints(shuffled()) for _ in range(2)] == [first] * 2
    assert len([*tmp_path.iterdir()]) == 1
    assert ints(Dataset.range(4).snapshot(tmp_path, compression)) == [0, 1, 2, 3]
    assert len([*tmp_path.iterdir()]) == 2


def test_a_pass_that_is_given_up_leaves_nothing_to_read(tmp_path: Path) -> None:
    dataset = Dataset.range(6).snapshot(tmp_path)
    elements = iter(dataset)
    next(elements)
    elements.close()
    assert not [*tmp_path.rglob("snapshot.metadata")]
    assert not [*tmp_path.rglob("*.snapshot*")]
    assert ints(dataset) == [*range(6)]


@pytest.mark.parametrize("is_written", [False, True])
def test_a_pass_is_saved_in_the_middle(is_written: bool, tmp_path: Path) -> None:
    dataset = Dataset.range(8).snapshot(tmp_path)
    if is_written:
        ints(dataset)
    elements = iter(dataset)
    assert [int(next(elements)) for _ in range(3)] == [0, 1, 2]
    state = elements.save()
    assert ints(elements) == [3, 4, 5, 6, 7]
    elements.restore(state)
    assert ints(elements) == [3, 4, 5, 6, 7]
    assert ints(dataset) == [*range(8)]


def test_shards_are_chosen_and_read_by_functions(tmp_path: Path) -> None:
    dataset = Dataset.range(6).snapshot(
        tmp_path,
        shard_func=lambda x: x % 2,
        reader_func=lambda shards: shards.flat_map(lambda one: one),
    )
    assert [ints(dataset), ints(dataset)] == [[0, 1, 2, 3, 4, 5], [0, 2, 4, 1, 3, 5]]


@pytest.mark.parametrize("compression", ["", "GZIP", "SNAPPY"])
def test_the_first_version(compression: str, tmp_path: Path) -> None:
    calls: list[int] = []
    dataset = version_1(noted(calls), tmp_path, snapshot_name="a", compression=compression)
    assert [ints(dataset), ints(dataset)] == [[*range(7)]] * 2
    assert len(calls) == 1
    assert (tmp_path / "custom-a" / "custom" / "00000000.snapshot").exists()
    read = version_1(
        noted(calls), tmp_path, snapshot_name="a", compression=compression, mode="read"
    )
    assert ints(read) == [*range(7)]
    passed = version_1(noted(calls), tmp_path, snapshot_name="a", mode="passthrough")
    assert ints(passed) == [*range(7)]
    assert len(calls) == 2


def test_wrong_modes(tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="mode must be"):
        version_1(Dataset.range(3), tmp_path, mode="erase")
    with pytest.raises(errors.NotFoundError, match="Metadata file does not exist"):
        ints(version_1(Dataset.range(3), tmp_path, mode="read"))
    ints(version_1(Dataset.range(3), tmp_path, snapshot_name="b"))
    other = Dataset.range(3, output_type=opkernel.int32)
    made = raw_ops.SnapshotDataset(
        input_dataset=other.variant_tensor,
        path=str(tmp_path),
        snapshot_name="b",
        output_types=[opkernel.int32],
        output_shapes=[[]],
    )
    with pytest.raises(errors.InvalidArgumentError, match="Data type mismatch"):
        ints(Dataset(made, other.element_spec))
