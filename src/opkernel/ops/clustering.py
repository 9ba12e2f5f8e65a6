"""Clusters of points: KmeansPlusPlusInitialization, KMC2ChainInitialization, NearestNeighbors.

A seed draws the same points as in TensorFlow. Distances are sums of squares in float.

Source: TensorFlow core/ops/clustering_ops.cc, core/kernels/clustering_ops.cc; Arthur and Vassilvitskii, k-means++: the
advantages of careful seeding (2007); Bachem et al., Approximate k-means++ in sublinear time (2016).
"""

import bisect
import math
from typing import Any

import numpy as np

from opkernel.device.work_clock import SLOW, in_time
from opkernel.kernel import check_allocation, one_blas_thread
from opkernel.opdef import register_op, scalar_shape, unknown_shape
from opkernel.ops.input_checks import require, require_rank, require_scalar, require_vector
from opkernel.ops.random.philox import Philox, ScalarDraws
from opkernel.ops.registration import register_kernel
from opkernel.types import Array, DataType

_CENTERS, _POINTS = 1024, 512
"""So many centers and points are compared at once."""
_TRIES = 10_000
"""So often a point is drawn by its distance; then each other point is as likely."""

KMEANS_PLUS_PLUS_INITIALIZATION = register_op(
    "KmeansPlusPlusInitialization(points: float, num_to_sample: int64, seed: int64, "
    "num_retries_per_sample: int64) -> samples: float",
    shape_fn=unknown_shape,
    doc="Some of the points, each drawn by its distance from the nearest one before it. Of "
    "`num_retries_per_sample + 1` draws the best one counts; a negative number means about log(num_to_sample).",
)
KMC2_CHAIN_INITIALIZATION = register_op(
    "KMC2ChainInitialization(distances: float, seed: int64) -> index: int64",
    shape_fn=scalar_shape,
    doc="The last state of a Markov chain of points, which draws them by their distances.",
)
NEAREST_NEIGHBORS = register_op(
    "NearestNeighbors(points: float, centers: float, k: int64) "
    "-> nearest_center_indices: int64, nearest_center_distances: float",
    shape_fn=unknown_shape,
    doc="The `k` nearest centers of each point, the nearest first, and the squares of their distances.",
)


def _scalar(tensor: Any, name: str) -> int:
    require_scalar(tensor, f"Input {name} should be a scalar.")
    return int(tensor)


def _half_squares(points: Array) -> Array:
    squares: Array = np.float32(0.5) * np.einsum("ij,ij->i", points, points)
    return squares


@register_kernel(KMEANS_PLUS_PLUS_INITIALIZATION)
def kmeans_plus_plus_initialization(
    points: Any, num_to_sample: Any, seed: Any, num_retries_per_sample: Any
) -> Any:
    require_rank(points, 2, "Input points should be a matrix.")
    count = _scalar(num_to_sample, "num_to_sample")
    start = _scalar(seed, "seed")
    retries = _scalar(num_retries_per_sample, "num_retries_per_sample")
    require(len(points), "Expected points.rows() > 0.")
    require(count > 0, "Expected num_to_sample > 0.")
    message = f"Expected num_to_sample <= points.rows(). {count} vs {len(points)}."
    require(count <= len(points), message)
    check_allocation((len(points), points.shape[1] + 4), DataType.DT_FLOAT)
    drawn = _PlusPlus(points, start)
    with np.errstate(all="ignore"), one_blas_thread():
        for _ in in_time(range(count), SLOW):
            drawn.add(retries if retries >= 0 else 2 + int(math.log(count)))
    return points[list(drawn.indices)]


class _PlusPlus:
    """Draws points far from those that it drew before.

    Attributes:
        indices: The drawn points, in their order.

    Args:
        points: [n, m], float.
        seed: Chooses the stream of random numbers.
    """

    def __init__(self, points: Array, seed: int) -> None:
        self.indices: dict[int, None] = {}
        self._coordinates = points.T.copy()
        self._squares = np.float32(0.5) * self._products(self._coordinates)
        self._draws = ScalarDraws(Philox.seeded_as_given(seed, 0))
        self._distances = np.full(len(points), np.inf, np.float32)
        self._sums = self._distances

    def add(self, retries: int) -> None:
        """Draw a point: the one of the smallest sum of distances of `retries + 1`; the first, if none is finite."""
        best, least, nearest = -1, math.inf, self._distances
        for _ in in_time(range(retries + 1), SLOW):
            index = self._draw()
            distances = np.minimum(self._distances, self._distances_to(index))
            total = _sum(distances)
            if best < 0 or total < least:
                best, nearest = index, distances
                least = min(math.inf, total)  # which NaN is not
        self.indices[best] = None
        self._distances = nearest
        self._sums = np.cumsum(nearest)

    def _draw(self) -> int:
        count = len(self._squares)
        if not self.indices:
            return self._draws.below_wide(count)
        total = self._sums[-1]
        for turn in in_time(range(2 * _TRIES)):
            if turn < _TRIES and total > 0:
                place = np.float32(self._draws.uniform()) * total
                index = min(bisect.bisect_right(self._sums, place), count - 1)
            else:
                index = self._draws.below_wide(count)
            if index not in self.indices:
                return index
        return next(index for index in range(count) if index not in self.indices)

    def _distances_to(self, index: int) -> Array:
        """Half the squares of the distances of all points."""
        products = self._products(self._coordinates[:, index, None])
        found: Array = (self._squares - products) + self._squares[index]
        return found

    def _products(self, others: Array) -> Array:
        """The products of the points with others, [m, n] or [m, 1]: coordinate by coordinate, as rounding counts."""
        found = np.zeros(self._coordinates.shape[1], np.float32)
        for mine, other in zip(self._coordinates, others, strict=True):
            found += mine * other
        return found


def _sum(values: Array) -> float:
    """The sum as Eigen rounds it, with packets of 8 floats: the sums of two points are often as good as equal."""
    pairs, packets = len(values) // 16 * 16, len(values) // 8 * 8
    if not packets:
        return float(np.cumsum(values)[-1])
    packet = values[:8]
    if packets > 8:
        halves = np.cumsum(values[:pairs].reshape(-1, 16), axis=0)[-1]
        packet = halves[:8] + halves[8:]
        if packets > pairs:
            packet = packet + values[pairs:packets]
    four = packet[:4] + packet[4:]
    total = (four[0] + four[2]) + (four[1] + four[3])
    return float(np.cumsum(np.append(total, values[packets:]), dtype=np.float32)[-1])


@register_kernel(KMC2_CHAIN_INITIALIZATION)
def kmc2_chain_initialization(distances: Any, seed: Any) -> Any:
    require_vector(distances, "Input distances should be a vector.")
    start = _scalar(seed, "seed")
    require(len(distances), "Expected distances_tensor.size() > 0.")
    draws = ScalarDraws(Philox.seeded_as_given(start, 0))
    selected = 0
    with np.errstate(all="ignore"):
        for i in in_time(range(1, len(distances))):
            if distances[i] > np.float32(draws.uniform()) * distances[selected]:
                selected = i
    return np.int64(selected)


@register_kernel(NEAREST_NEIGHBORS)
def nearest_neighbors(points: Any, centers: Any, k: Any) -> tuple[Any, Any]:
    require_rank(points, 2, "Input points should be a matrix.")
    require_rank(centers, 2, "Input centers should be a matrix.")
    wanted = _scalar(k, "k")
    require(len(points), "Expected points.rows() > 0.")
    sizes = points.shape[1], centers.shape[1]
    message = f"Expected point_dimensions == center_dimensions: {sizes[0]} vs {sizes[1]}."
    require(sizes[0] == sizes[1], message)
    require(wanted >= 0, "Expected k >= 0.")
    shape = len(points), min(len(centers), wanted)
    check_allocation((3, *shape), DataType.DT_INT64)
    check_allocation((len(centers),), DataType.DT_FLOAT)
    indices, distances = np.empty(shape, np.int64), np.empty(shape, np.float32)
    if not shape[1]:
        return indices, distances
    squares = _half_squares(centers)
    with np.errstate(all="ignore"), one_blas_thread():
        for first in range(0, len(points), _POINTS):
            rows = slice(first, first + _POINTS)
            indices[rows], distances[rows] = _nearest(points[rows], centers, squares, shape[1])
    return indices, distances


def _nearest(points: Array, centers: Array, squares: Array, k: int) -> tuple[Array, Array]:
    """The k nearest centers of some points, block of centers by block; of equally near ones, the first."""
    own = _half_squares(points)[:, None]
    indices: Array = np.empty((len(points), 0), np.int64)
    distances: Array = np.empty((len(points), 0), np.float32)
    for first in in_time(range(0, len(centers), _CENTERS), SLOW):
        block = slice(first, first + _CENTERS)
        partial = squares[block] - points @ centers[block].T
        order = np.argsort(partial, axis=1, kind="stable")[:, :k]
        found = 2 * (own + np.take_along_axis(partial, order, axis=1))
        distances = np.concatenate([distances, found], axis=1)
        indices = np.concatenate([indices, order + first], axis=1)
        if first:
            kept = np.argsort(distances, axis=1, kind="stable")[:, :k]
            indices, distances = (
                np.take_along_axis(one, kept, axis=1) for one in (indices, distances)
            )
    return indices, distances
