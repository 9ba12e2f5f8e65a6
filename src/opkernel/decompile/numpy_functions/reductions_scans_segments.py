"""Reductions, scans and segments as plain NumPy functions."""

from typing import Any

import numpy as np

__all__ = ["FUNCTIONS"]


def axes_of(axis: Any) -> Any:
    return tuple(int(a) for a in np.ravel(axis))


def mean(x: Any, axis: Any, *, keep_dims: bool = False) -> Any:
    return np.mean(x, axis=axes_of(axis), keepdims=keep_dims, dtype=x.dtype)


def total(x: Any, axis: Any, *, keep_dims: bool = False) -> Any:
    return np.sum(x, axis=axes_of(axis), keepdims=keep_dims, dtype=x.dtype)


def product(x: Any, axis: Any, *, keep_dims: bool = False) -> Any:
    return np.prod(x, axis=axes_of(axis), keepdims=keep_dims, dtype=x.dtype)


def largest(x: Any, axis: Any, *, keep_dims: bool = False) -> Any:
    return np.max(x, axis=axes_of(axis), keepdims=keep_dims, initial=lowest_of(x.dtype))


def smallest(x: Any, axis: Any, *, keep_dims: bool = False) -> Any:
    return np.min(x, axis=axes_of(axis), keepdims=keep_dims, initial=highest_of(x.dtype))


def lowest_of(dtype: Any) -> Any:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def highest_of(dtype: Any) -> Any:
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


def all_true(x: Any, axis: Any, *, keep_dims: bool = False) -> Any:
    return np.all(x, axis=axes_of(axis), keepdims=keep_dims)


def any_true(x: Any, axis: Any, *, keep_dims: bool = False) -> Any:
    return np.any(x, axis=axes_of(axis), keepdims=keep_dims)


def euclidean_norm(x: Any, axis: Any, *, keep_dims: bool = False) -> Any:
    squares = np.sum(x * np.conj(x), axis=axes_of(axis), keepdims=keep_dims, dtype=x.dtype)
    return np.sqrt(squares).astype(x.dtype)


def argmax(x: Any, axis: Any, *, output_type: str = "int64") -> Any:
    return np.argmax(x, axis=int(axis)).astype(output_type)


def argmin(x: Any, axis: Any, *, output_type: str = "int64") -> Any:
    return np.argmin(x, axis=int(axis)).astype(output_type)


def l2_loss(t: Any) -> Any:
    return np.sum(t * t) / t.dtype.type(2)


def cumsum(x: Any, axis: Any, *, exclusive: bool = False, reverse: bool = False) -> Any:
    return scan(np.cumsum, x, int(axis), 0, exclusive, reverse)


def cumprod(x: Any, axis: Any, *, exclusive: bool = False, reverse: bool = False) -> Any:
    return scan(np.cumprod, x, int(axis), 1, exclusive, reverse)


def scan(function: Any, x: Any, axis: int, first: float, exclusive: bool, reverse: bool) -> Any:
    x = np.flip(x, axis) if reverse else x
    result = function(x, axis=axis, dtype=x.dtype)
    if exclusive:
        before, _ = np.split(result, [max(x.shape[axis] - 1, 0)], axis)
        start = np.full_like(np.take(result, range(min(x.shape[axis], 1)), axis), first)
        result = np.concatenate([start, before], axis)
    return np.flip(result, axis) if reverse else result


def cumulative_logsumexp(
    x: Any, axis: Any, *, exclusive: bool = False, reverse: bool = False
) -> Any:
    return scan(np.logaddexp.accumulate, x, int(axis), -np.inf, exclusive, reverse)


def bincount(x: Any, size: Any, weights: Any) -> Any:
    kept = (x >= 0) & (x < size)
    counts = np.zeros(int(size), weights.dtype)
    np.add.at(counts, x[kept], weights[kept] if weights.size else weights.dtype.type(1))
    return counts


def dense_bincount(x: Any, size: Any, weights: Any, *, binary_output: bool = False) -> Any:
    """How often each number stands in a vector, or in each row of a matrix."""
    if x.ndim == 2:
        of_rows = weights if weights.size else [weights] * len(x)
        rows = zip(x, of_rows, strict=True)
        return np.stack([dense_bincount(r, size, w, binary_output=binary_output) for r, w in rows])
    counts = bincount(x, size, weights)
    return (counts != 0).astype(counts.dtype) if binary_output else counts


def segments(ufunc: Any, data: Any, ids: Any, count: int, first: Any) -> Any:
    """The reduction by a ufunc of the rows of each id, beginning with `first`."""
    result = np.full((count, *data.shape[ids.ndim :]), first, data.dtype)
    kept = ids >= 0
    ufunc.at(result, ids[kept], data[kept])
    return result


def segment_sum(data: Any, ids: Any) -> Any:
    return segments(np.add, data, ids, segment_count(ids), 0)


def segment_count(ids: Any) -> int:
    return int(ids[-1]) + 1 if ids.size else 0


def segment_mean(data: Any, ids: Any) -> Any:
    counts = np.maximum(np.bincount(ids, minlength=segment_count(ids)), 1)
    sums = segment_sum(data, ids)
    return (sums / counts.reshape(-1, *[1] * (data.ndim - 1))).astype(data.dtype)


def segment_prod(data: Any, ids: Any) -> Any:
    return segments(np.multiply, data, ids, segment_count(ids), 1)


def segment_max(data: Any, ids: Any) -> Any:
    result = segments(np.maximum, data, ids, segment_count(ids), lowest_of(data.dtype))
    result[np.bincount(ids, minlength=len(result)) == 0] = 0
    return result


def segment_min(data: Any, ids: Any) -> Any:
    result = segments(np.minimum, data, ids, segment_count(ids), highest_of(data.dtype))
    result[np.bincount(ids, minlength=len(result)) == 0] = 0
    return result


def unsorted_segment_sum(data: Any, ids: Any, count: Any) -> Any:
    return segments(np.add, data, ids, int(count), 0)


def unsorted_segment_prod(data: Any, ids: Any, count: Any) -> Any:
    return segments(np.multiply, data, ids, int(count), 1)


def unsorted_segment_max(data: Any, ids: Any, count: Any) -> Any:
    first = np.finfo(data.dtype).min if data.dtype.kind == "f" else lowest_of(data.dtype)
    return segments(np.maximum, data, ids, int(count), first)


def unsorted_segment_min(data: Any, ids: Any, count: Any) -> Any:
    first = np.finfo(data.dtype).max if data.dtype.kind == "f" else highest_of(data.dtype)
    return segments(np.minimum, data, ids, int(count), first)


def top_k_v2(x: Any, k: Any, *, index_type: str = "int32") -> Any:
    ascending = np.argsort(x[..., ::-1], axis=-1, kind="stable")
    indices = (x.shape[-1] - 1 - ascending[..., ::-1])[..., : int(k)]
    return np.take_along_axis(x, indices, -1), indices.astype(index_type)


def lower_bound(rows: Any, values: Any, *, out_type: str = "int32") -> Any:
    """Where values belong into sorted rows, before equal elements."""
    places = [np.searchsorted(row, v, "left") for row, v in zip(rows, values, strict=True)]
    return np.array(places, out_type).reshape(values.shape)


def upper_bound(rows: Any, values: Any, *, out_type: str = "int32") -> Any:
    """Where values belong into sorted rows, after equal elements."""
    places = [np.searchsorted(row, v, "right") for row, v in zip(rows, values, strict=True)]
    return np.array(places, out_type).reshape(values.shape)


FUNCTIONS = {
    "All": all_true,
    "Any": any_true,
    "ArgMax": argmax,
    "ArgMin": argmin,
    "Max": largest,
    "Min": smallest,
    "Prod": product,
    "Sum": total,
    "TopKV2": top_k_v2,
}
