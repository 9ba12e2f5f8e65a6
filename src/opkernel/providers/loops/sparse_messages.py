"""Loops that read the TensorProtos of serialized sparse tensors: those that hold a type, a shape and bytes."""

from typing import Any

import numpy as np

from opkernel.device.string_buffer import string_batches, strings_between
from opkernel.ops.registration import NUMBERS
from opkernel.ops.sparse import deserialize, serialize
from opkernel.providers import LOOPS
from opkernel.providers.loops import examples
from opkernel.providers.loops.compiled_loop import loop
from opkernel.providers.loops.examples import field_at, varint_at
from opkernel.types import Array, DataType

_TYPE_TAG, _SIZE_TAG, _SHAPE_TAG, _CONTENT_TAG = 0x08, 0x08, 0x12, 0x22
_LARGE = 1 << 28
"""Sizes from here on are left to the reader of messages."""


def _read_by_heads(data: Array, splits: Array, headers: Array) -> bool:
    """As `read_headers`. Most messages have one of few heads, which is what stands before the content."""
    known: dict[bytes, list[int]] = {}
    found = []
    for text in strings_between(data, splits[:-1], splits[1:]):
        if len(text) < 4 or max(text[1], text[3]) > 0x7F:
            return False
        head = text[: 4 + text[3]]
        if head not in known:
            of_head = np.zeros((6, 1), np.int64)
            bounds = np.array([0, len(head)])
            if not read_headers.function(np.frombuffer(head, np.uint8), bounds, of_head):
                return False
            known[head] = of_head[:4, 0].tolist()
        begin = end = len(head)
        if end < len(text):
            begin, end = field_at(text, begin, len(text), _CONTENT_TAG)
            if end != len(text):
                return False
        found.append((*known[head], begin, end))
    headers[:] = np.array(found, np.int64).T
    headers[4:] += splits[:-1]
    return True


@loop(otherwise=_read_by_heads, source=examples.__file__)
def read_headers(data: Array, splits: Array, headers: Array) -> bool:
    """Find for each message its type, rank, up to two sizes, and where its bytes begin and end, [6, messages].

    False where one has another form.
    """
    for i in range(splits.size - 1):
        at, end = splits[i], splits[i + 1]
        if at == end or data[at] != _TYPE_TAG:
            return False
        headers[0, i], at = varint_at(data, at + 1, end)
        at, stop = field_at(data, at, end, _SHAPE_TAG)
        if headers[0, i] < 0 or stop < 0:
            return False
        rank = 0
        while at < stop:
            begin, at = field_at(data, at, stop, _SHAPE_TAG)
            if at < 0 or rank == 2:
                return False
            size, last = np.int64(0), at
            if begin < at:
                size, last = varint_at(data, begin + 1, at)
            if size < 0 or last != at or (begin < at and data[begin] != _SIZE_TAG):
                return False
            headers[2 + rank, i] = size
            rank += 1
        headers[1, i] = rank
        headers[4, i] = headers[5, i] = stop
        if stop < end:
            headers[4, i], headers[5, i] = field_at(data, stop, end, _CONTENT_TAG)
            if headers[5, i] != end:
                return False
    return True


def _joined(data: Array, begins: Array, ends: Array) -> Array:
    whole = data.tobytes()
    pieces = [whole[a:b] for a, b in zip(begins.tolist(), ends.tolist(), strict=True)]
    return np.frombuffer(b"".join(pieces), np.uint8)


@loop(otherwise=_joined)
def copied(data: Array, begins: Array, ends: Array) -> Array:
    """The bytes between places, one part after the other."""
    size = 0
    for i in range(begins.size):
        size += ends[i] - begins[i]
    out, to = np.empty(size, np.uint8), 0
    for i in range(begins.size):
        for at in range(begins[i], ends[i]):
            out[to] = data[at]
            to += 1
    return out


def _fit(headers: Array, dtype: DataType) -> bool:
    """Whether messages are indices, values and shapes of sparse tensors of one rank, [6, n, 3]."""
    types, ranks, first, second = headers[:4]
    wanted = int(DataType.DT_INT64), int(dtype), int(DataType.DT_INT64)
    if (types != wanted).any() or (ranks != (2, 1, 1)).any() or headers[2:4].max() >= _LARGE:
        return False
    second[:, 1:] = 1  # of vectors
    sizes = headers[5] - headers[4]
    rank = first[0, 2]
    return bool(
        (sizes == first * second * (8, dtype.numpy_dtype.itemsize, 8)).all()
        and (first[:, 0] == first[:, 1]).all()
        and (second[:, 0] == rank).all()
        and (first[:, 2] == rank).all()
    )


def read_strings(strings: Any, batch: tuple[int, ...], dtype: DataType) -> Any:
    """As `deserialize.Read`."""
    if dtype not in NUMBERS:
        return None
    headers = np.zeros((6, strings.size), np.int64)
    contents: list[list[Array]] = [[], [], []]
    done = 0
    for texts in string_batches(strings):
        data, splits = texts.joined()
        found = headers[:, done : done + len(texts.texts)]
        if not read_headers(data, splits, found):
            return None
        for kind, content in enumerate(contents):
            begins, ends = found[4:, (kind - done) % 3 :: 3]
            content.append(copied(data, begins, ends))
        done += len(texts.texts)
    headers = headers.reshape(6, -1, 3)
    if not _fit(headers, dtype):
        return None
    types = np.dtype(np.int64), dtype.numpy_dtype, np.dtype(np.int64)
    indices, values, shapes = (
        np.concatenate(content).view(one) for content, one in zip(contents, types, strict=True)
    )
    rank = headers[2, 0, 2]
    matrices = indices.reshape(len(values), rank), shapes.reshape(len(strings), rank)
    parts = serialize.SparseParts(matrices[0], values, matrices[1])
    return serialize.of_batch(parts, headers[2, :, 1], batch, dtype)


deserialize.register_deserialize(read_strings, (DataType.DT_STRING,), LOOPS.kernels)
