"""Feature messages of few examples as columns: each message is read by itself, as `features` reads those of odd forms.

Source: TensorFlow core/util/example_proto_fast_parsing.cc.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from opkernel.device.string_tensors import string_tensor
from opkernel.kernel import check_allocation
from opkernel.ops.parsing.feature_spans import entries_of, joined_message
from opkernel.ops.parsing.features import (
    KIND_OF,
    Column,
    packed_numbers,
    parsing,
    parts_of_list,
    text_of,
)
from opkernel.ops.parsing.wire import varints
from opkernel.types import DataType


def columns_one_by_one(
    records: Sequence[bytes], keys: Sequence[bytes], types: Sequence[DataType], number: int
) -> list[Column]:
    """The features of few records, whose bytes are read one after the other.

    Args:
        records: The records.
        keys: The names of the features.
        types: Their types.
        number: The number of the field that has the features.

    Raises:
        InvalidArgumentError: a message is damaged, or has values of another type.
    """
    messages = [joined_message(record, number) for record in records]
    maps = [entries_of(message, 0, len(message)) for message in messages]
    return [
        _column_one_by_one(messages, [entries.get(key, (0, 0)) for entries in maps], dtype, key)
        for key, dtype in zip(keys, types, strict=True)
    ]


def _column_one_by_one(
    messages: Sequence[bytes], spans: Sequence[tuple[int, int]], dtype: DataType, key: bytes
) -> Column:
    kind, counts, values = KIND_OF[dtype], [-1] * len(spans), []
    with parsing(text_of(key)):
        for row, (start, end) in enumerate(spans):
            if start < end:
                some = _values(messages[row], start, end, kind)
                counts[row] = len(some)
                values.append(some)
    size = check_allocation((sum(map(len, values)),), dtype)
    if kind == 1:
        joined = string_tensor(size, [*chain.from_iterable(values)])
    elif len(values) == 1:
        joined = values[0]
    else:
        joined = np.concatenate(values) if values else np.empty(size, dtype.numpy_dtype)
    return Column(np.array(counts, np.int64), joined)


def _values(data: bytes, start: int, end: int, kind: int) -> Any:
    """The strings of a feature in a list, or its numbers in an array."""
    parts = parts_of_list(data, start, end, kind)
    if kind == 1:
        return [data[a:b] for _, _, a, b in parts]
    payload = np.frombuffer(packed_numbers(data, parts, kind), np.uint8)
    return payload.view("<f4").astype(np.float32) if kind == 2 else varints(payload)
