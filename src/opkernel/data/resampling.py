"""`rejection_resample`: elements of classes in other proportions.

Source: TensorFlow python/data/ops/dataset_ops.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from opkernel.data.chosen_datasets import ChosenDatasets
from opkernel.data.structure import checked_function
from opkernel.endpoints import array, math, random
from opkernel.endpoints.tensors import cast_to, shape_of, static_rank, static_value
from opkernel.types import DataType

_ESTIMATED_AT_ONCE = 32
"""After how many elements the distribution is estimated anew."""
_SEEN_BEFORE = 10
"""How many elements of each class the first estimate takes for granted."""


class Resampling(ChosenDatasets):
    """The method."""

    def rejection_resample(
        self,
        class_func: Callable[..., Any],
        target_dist: Any,
        initial_dist: Any = None,
        seed: int | None = None,
        name: str | None = None,
    ) -> Self:
        """Pairs of a class and an element, of which some are left out so that the classes have other proportions.

            even = Dataset.range(100).rejection_resample(lambda x: x % 2, [0.2, 0.8], seed=1)

        The elements are the same as TensorFlow's for the same seed.

        Args:
            class_func: Gives the class of an element, an int32 or int64 from 0 on.
            target_dist: [classes]: the share that each class is to have.
            initial_dist: [classes]: the share that each class has; estimated as elements come if None.
            seed: As for `shuffle`.
            name: Ignored.

        Raises:
            TypeError: an argument is of another kind.
            ValueError: the shares are no vector.
        """
        checked_function(class_func)
        target = _shares(target_dist)
        source: Any = type(self)  # Dataset, which has the sources
        if initial_dist is None:
            spread = self._estimated(class_func, target).map(lambda seen: _acceptance(seen, target))
            original_share = None
        else:
            initial = _shares(initial_dist)
            spread = source.from_tensors(_acceptance(initial, target)).repeat()
            original_share = _known_share(initial, target)
        accepted = source.zip((spread, self._with_class(class_func)))
        filtered: Self = accepted.filter(
            lambda shares, labelled: math.less(
                random.uniform([], seed=seed), array.gather(shares[0], labelled[0])
            )
        ).map(lambda _, labelled: labelled)
        if original_share == 1:
            return self._with_class(class_func)
        if original_share == 0:
            return filtered
        return self.sample_from_datasets(
            [self._with_class(class_func), filtered],
            spread.map(lambda _, original: [(original, 1.0 - original)]),
            seed,
            stop_on_empty_dataset=True,
        )

    def _with_class(self, class_func: Callable[..., Any]) -> Self:
        """Pairs of a class and an element."""
        is_tuple = type(self.element_spec) is tuple
        return self.map(lambda *parts: (class_func(*parts), parts if is_tuple else parts[0]))

    def _estimated(self, class_func: Callable[..., Any], target: Any) -> Self:
        """For each element, the shares of the classes as they are known then."""
        count = shape_of(target)[0]

        def update(seen: Any, classes: Any) -> tuple[Any, Any]:
            found = array.one_hot(classes, count, dtype=DataType.DT_INT64)
            seen = seen + math.reduce_sum(found, 0)
            shares = cast_to(math.truediv(seen, math.reduce_sum(seen)), DataType.DT_FLOAT)
            return seen, array.tile(array.expand_dims(shares, 0), [_ESTIMATED_AT_ONCE, 1])

        seen_before = array.fill([count], np.int64(_SEEN_BEFORE))
        return self.map(class_func).batch(_ESTIMATED_AT_ONCE).scan(seen_before, update).unbatch()


def _shares(given: Any) -> Any:
    """A float32 vector."""
    shares = cast_to(given, DataType.DT_FLOAT)
    if static_rank(shares) not in (None, 1):
        raise ValueError(f"The shares of classes are a vector, not of rank {static_rank(shares)}")
    return shares


def _acceptance(initial: Any, target: Any) -> tuple[Any, Any]:
    """For each class how probable it is that an element is kept, and the share of elements that nothing is asked."""
    ratio = math.truediv(target, math.add(initial, np.finfo(np.float32).tiny))
    least = math.reduce_min(ratio)
    above = math.subtract(ratio, least)
    return math.truediv(above, math.subtract(math.reduce_max(ratio), least)), least


def _known_share(initial: Any, target: Any) -> float | None:
    """The share of elements that nothing is asked; None where it is not known before the graph runs."""
    given, wanted = static_value(initial), static_value(target)
    if given is None or wanted is None:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.min(wanted / given, initial=np.inf))
