"""The values of the feature lists of many SequenceExamples: the steps of each list, and the values of each step.

Source: TensorFlow core/example/feature.proto, core/util/example_proto_fast_parsing.cc.
"""

from array import array
from dataclasses import dataclass
from typing import Any

import numpy as np

from opkernel.device.made_bytes import MadeBytes, making_bytes
from opkernel.device.work_clock import WorkClock
from opkernel.errors import InvalidArgumentError
from opkernel.ops.parsing.feature_spans import Spans
from opkernel.ops.parsing.features import Column, Reading, column_of, places_in_lists
from opkernel.ops.parsing.wire import WireError, fields
from opkernel.ops.ragged.gather_range import lengths_to_splits
from opkernel.types import DataType

_OF_STEP = 1 << 12
"""The work of reading a step."""


@dataclass(frozen=True, slots=True)
class StepColumn:
    """The values of one feature list: how many steps each example has, and each step's values."""

    name: str
    steps: Any
    """-1 where the list is missing."""
    column: Column
    """Of all steps of all examples."""

    @property
    def lengths(self) -> Any:
        """The numbers of steps, 0 where the list is missing."""
        return np.maximum(self.steps, 0)

    def ragged(self, dtype: DataType) -> tuple[Any, Any, Any]:
        """Values, splits of the examples and splits of the steps."""
        outer = lengths_to_splits(self.lengths, dtype)
        inner = lengths_to_splits(self.column.lengths, dtype)
        return self.column.values, outer, inner


def steps_of(spans: Spans, dtype: DataType, name: str, reading: Reading) -> StepColumn:
    """The values of a feature list.

    Args:
        spans: Where the lists stand.
        dtype: The type of the values.
        name: The key.
        reading: The algorithms.

    Raises:
        InvalidArgumentError: a message is damaged, or has values of another type.
    """
    with making_bytes("feature lists") as made:
        places = places_in_lists(spans, made, reading) or _places_one_by_one(spans, name, made)
    counts, begins, stops = places
    steps = np.where(spans.starts >= 0, counts, -1)
    features = Spans(spans.buffer, np.stack([begins, stops]))
    return StepColumn(name, steps, column_of(features, dtype, name, reading))


def _places_one_by_one(spans: Spans, name: str, made: MadeBytes) -> tuple[Any, Any, Any]:
    """As `places_in_lists`, of lists that may have other fields, too."""
    counts, found = [], array("q")
    clock = WorkClock("reading feature lists")
    try:
        for start, end in zip(spans.starts.tolist(), spans.ends.tolist(), strict=True):
            before = len(found)
            for number, wire, a, b in fields(spans.buffer.data, start, end):
                clock.spend(_OF_STEP)
                if (number, wire) == (1, 2):
                    found.extend((a, b))
            made.add(8 * (len(found) - before))
            counts.append((len(found) - before) // 2)
    except WireError as error:
        raise InvalidArgumentError(f"Could not parse feature list {name}: {error}") from None
    begins, stops = np.array(found, np.int64).reshape(-1, 2).T
    return np.array(counts, np.int64), begins, stops
