"""Assertions on pipelines, shards for workers, branches, and handles of pools and collectors. Values are TensorFlow's."""

from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import errors, raw_ops
from opkernel.data import Dataset

NUMBER: dict[str, Any] = {"output_types": [opkernel.int64], "output_shapes": [[]]}


def ints(variant: Any) -> list[int]:
    return [int(one) for one in Dataset(variant, opkernel.TensorSpec([], opkernel.int64))]


def sharded(dataset: Dataset, workers: int, index: int, policy: int) -> Any:
    return raw_ops.AutoShardDataset(
        input_dataset=dataset.variant_tensor,
        num_workers=workers,
        index=index,
        auto_shard_policy=policy,
        **NUMBER,
    )


@pytest.mark.parametrize(
    ("policy", "expected"),
    [(-1, [*range(10)]), (0, [1, 4, 7]), (2, [1, 4, 7]), (3, [*range(10)])],
)
def test_elements_are_dealt_to_workers(policy: int, expected: list[int]) -> None:
    assert ints(sharded(Dataset.range(10), 3, 1, policy)) == expected
    assert ints(sharded(Dataset.range(10), 1, 0, policy)) == [*range(10)]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((3, 1, 1), errors.NotFoundError),
        ((3, 1, 9), errors.InvalidArgumentError),
        ((0, 0, 0), errors.InvalidArgumentError),
        ((2, 2, 0), errors.InvalidArgumentError),
        ((2, -1, 0), errors.InvalidArgumentError),
    ],
)
def test_wrong_workers(arguments: tuple[int, int, int], error: type[Exception]) -> None:
    with pytest.raises(error):
        sharded(Dataset.range(10), *arguments)


@pytest.mark.parametrize(
    ("transformations", "words"),
    [
        (['name: "MapDataset"', 'name: "RangeDataset"'], ""),
        (['name: "MapDataset" attr { key: "preserve_cardinality" value { b: true } }'], ""),
        (
            ['name: "BatchDataset"'],
            "Asserted transformation 'BatchDataset' encountered 'MapDataset'",
        ),
        (
            ['name: "MapDataset" attr { key: "preserve_cardinality" value { b: false } }'],
            "the attr",
        ),
        (['name: "MapDataset"', 'name: "RangeDataset"', 'name: "x"'], "encountered ''"),
        (["{"], "Could not parse"),
    ],
)
def test_stages_that_came_before(transformations: list[str], words: str) -> None:
    dataset = Dataset.range(3).map(lambda x: x)

    def made() -> Any:
        return raw_ops.AssertPrevDataset(
            input_dataset=dataset.variant_tensor, transformations=transformations, **NUMBER
        )

    if words:
        with pytest.raises(errors.InvalidArgumentError, match=words):
            made()
    else:
        assert ints(made()) == [0, 1, 2]


def test_the_first_of_several_branches() -> None:
    with opkernel.Graph().as_default() as graph:
        numbers = Dataset.range(6)
        spec = opkernel.TensorSpec([], opkernel.variant)

        def doubled(variant: Any, factor: Any) -> Any:
            given = Dataset(variant, opkernel.TensorSpec([], opkernel.int64))
            return given.map(lambda x: x * factor).variant_tensor

        branch = opkernel.function(doubled).get_concrete_function(
            spec, opkernel.TensorSpec([], opkernel.int64)
        )
        branch.graph.add_to(graph)
        made = raw_ops.ChooseFastestBranchDataset(
            input_dataset=numbers.variant_tensor,
            ratio_numerator=np.int64(1),
            ratio_denominator=np.int64(1),
            other_arguments=[np.int64(2), np.int64(2)],
            num_elements_per_branch=1,
            branches=[branch.graph.reference.func] * 2,
            other_arguments_lengths=[1, 1],
            **NUMBER,
        )
        total = Dataset(made, opkernel.TensorSpec([], opkernel.int64)).reduce(
            np.int64(0), lambda state, x: state * 100 + x
        )
    assert opkernel.Session(graph).run(total) == 2_04_06_08_10


def test_pools_and_collectors_are_there_and_do_nothing() -> None:
    def handle(value: Any) -> Any:
        array = np.empty((), object)
        array[()] = value
        return array

    pool = handle(raw_ops.ThreadPoolHandle(num_threads=2, display_name="pool"))
    numbers = Dataset.range(3).variant_tensor
    assert ints(raw_ops.ThreadPoolDataset(input_dataset=numbers, thread_pool=pool, **NUMBER)) == [
        0,
        1,
        2,
    ]
    collector = handle(raw_ops.StatsAggregatorHandleV2())
    made = raw_ops.SetStatsAggregatorDataset(
        input_dataset=numbers, stats_aggregator=collector, tag="a", counter_prefix="b", **NUMBER
    )
    assert ints(made) == [0, 1, 2]
    assert np.asarray(raw_ops.StatsAggregatorSummary(iterator=collector)).item() == b""
    with pytest.raises(errors.OpError):
        raw_ops.StatsAggregatorSummary(iterator=pool)
    assert raw_ops.DummyIterationCounter() is not None


@pytest.mark.parametrize("threads", [-1, 65536, 1610612736, 1 << 40])
def test_a_pool_has_at_most_65535_threads(threads: int) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="num_threads"):
        raw_ops.ThreadPoolHandle(num_threads=threads, display_name="pool")
