"""The methods that take each element from one of several datasets.

Source: TensorFlow python/data/ops/sample_from_datasets_op.py, directed_interleave_op.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from opkernel import raw_ops
from opkernel.data.batches import Batches
from opkernel.data.structure import covering, is_dataset, types_of
from opkernel.data.structured_function import call_op
from opkernel.endpoints import array, math
from opkernel.endpoints.tensors import convert, dtype_of, static_shape
from opkernel.graph import Tensor
from opkernel.messages import short_repr
from opkernel.types import DataType


class ChosenDatasets(Batches):
    """The methods."""

    @classmethod
    def choose_from_datasets(
        cls,
        datasets: Sequence[Self],
        choice_dataset: Self,
        stop_on_empty_dataset: bool = True,
    ) -> Self:
        """An element of that dataset whose number another one gives, each time.

        Raises:
            TypeError: an argument is no dataset, or the elements are of different types.
            ValueError: there are no datasets.
        """
        given = _checked(datasets, "choose_from_datasets", choice_dataset)
        return cls._directed(choice_dataset, given, stop_on_empty_dataset)

    @classmethod
    def sample_from_datasets(
        cls,
        datasets: Sequence[Self],
        weights: Any = None,
        seed: int | None = None,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool | None = None,
    ) -> Self:
        """An element of a dataset that is drawn at random, each time; the same as TensorFlow's for the same seed.

            both = Dataset.sample_from_datasets([Dataset.range(3), Dataset.range(10, 13)], [0.8, 0.2], seed=1)

        Args:
            datasets: The datasets.
            weights: How probable each is: float32 or float64 [datasets], or a dataset of such; all alike if None.
            seed: As for `shuffle`.
            stop_on_empty_dataset: Whether it ends with the first dataset that does; else with the last.
            rerandomize_each_iteration: Whether each pass has another order; it has not if None.

        Raises:
            TypeError: an argument is no dataset, the elements are of different types, or the weights are no floats.
            ValueError: there are no datasets, or more or fewer weights.
        """
        given = _checked(datasets, "sample_from_datasets")
        source: Any = cls  # Dataset, which has the sources
        numbers = source.random(seed, rerandomize_each_iteration).batch(2)
        if is_dataset(weights):
            logits = weights.map(lambda *parts: math.log(array.stack(_stacked(parts))))
            return cls._directed(
                source.zip((logits, numbers)).map(_draw), given, stop_on_empty_dataset
            )
        given, logits = _weighted(given, weights)
        if len(given) == 1:
            only: Self = given[0]
            return only
        logits = array.expand_dims(logits, 0)
        selector = numbers.map(lambda seeds: _draw(logits, seeds))
        return cls._directed(selector, given, stop_on_empty_dataset)

    @classmethod
    def _directed(cls, selector: Any, datasets: Sequence[Any], stops_early: bool) -> Self:
        spec = datasets[0].element_spec
        for other in datasets[1:]:
            if types_of(spec) != types_of(other.element_spec):
                raise TypeError(
                    f"The datasets have different elements: {spec} and {other.element_spec}"
                )
            spec = covering(spec, other.element_spec)
        variant = call_op(
            "DirectedInterleaveDataset",
            selector_input_dataset=selector.variant_tensor,
            data_input_datasets=[dataset.variant_tensor for dataset in datasets],
            stop_on_empty_dataset=stops_early,
            spec=spec,
        )
        made: Self = cls.make(variant, spec)
        return made


def _checked(datasets: Any, method: str, *others: Any) -> list[Any]:
    """The datasets as a list; TypeError for other values, ValueError for none."""
    given = [*datasets] if isinstance(datasets, list | tuple) else [datasets]
    for part in (*given, *others):
        if not is_dataset(part):
            raise TypeError(f"{method} takes Datasets, not {short_repr(part)}")
    if not given:
        raise ValueError(f"{method} needs at least one dataset")
    return given


def _weighted(datasets: list[Any], weights: Any) -> tuple[list[Any], Any]:
    """The datasets that can be drawn, and the logarithms of their weights."""
    if weights is None:
        return datasets, convert([1.0] * len(datasets))
    given = convert(weights)
    if dtype_of(given) not in (DataType.DT_FLOAT, DataType.DT_DOUBLE):
        raise TypeError(f"Weights are float32 or float64, not {short_repr(weights)}")
    if static_shape(given) not in (None, [None], [len(datasets)]):
        raise ValueError(
            f"There are {len(datasets)} datasets, and the weights {short_repr(weights)}"
        )
    if not isinstance(given, Tensor):
        drawn = given > 0
        if not drawn.any():
            return [datasets[0].take(0)], given
        datasets = [one for one, is_drawn in zip(datasets, drawn, strict=True) if is_drawn]
        given = given[drawn]
    return datasets, math.log(given)


def _stacked(parts: Any) -> list[Any]:
    """The tensors of tuples in tuples, each tuple one tensor."""
    return [array.stack(_stacked(part)) if isinstance(part, tuple) else part for part in parts]


def _draw(logits: Any, seeds: Any) -> Any:
    drawn = raw_ops.StatelessMultinomial(logits=logits, num_samples=1, seed=seeds)
    return array.squeeze(drawn, [0, 1])
