"""Seeds draw TensorFlow's points; the nearest centers are those of an independent search; bad calls are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError

POINTS = np.array([[i * i % 17, i * 7 % 11] for i in range(20)], np.float32)


def initialized(points: Any, count: int, seed: int, retries: int) -> Any:
    return raw_ops.KmeansPlusPlusInitialization(
        points=points,
        num_to_sample=np.int64(count),
        seed=np.int64(seed),
        num_retries_per_sample=np.int64(retries),
    )


@pytest.mark.parametrize(
    ("seed", "retries", "wanted"),
    [  # from TensorFlow
        (0, 0, [[13, 8], [1, 2], [0, 0], [4, 6], [13, 1], [8, 2]]),
        (1234567890123, 0, [[2, 9], [13, 8], [4, 1], [16, 3], [9, 10], [4, 6]]),
        (-5, 3, [[8, 7], [0, 0], [16, 6], [2, 9], [4, 1], [13, 1], [9, 10], [1, 5], [13, 8]]),
    ],
)
def test_seeds_draw_the_points_of_tensorflow(seed: int, retries: int, wanted: Any) -> None:
    np.testing.assert_array_equal(initialized(POINTS, len(wanted), seed, retries), wanted)


@pytest.mark.parametrize("retries", [-1, 0, 2])
@pytest.mark.parametrize(
    "points",
    [
        POINTS,
        POINTS[:, :0],
        np.zeros((7, 3), np.float32),
        np.full((5, 2), np.nan, np.float32),
        np.float32([[3e38], [-3e38], [1], [1]]),
        np.float32([[1.1], [1.1], [1.1000001], [7.7], [7.7]]),
    ],
)
def test_any_points_are_drawn_once_each(points: Any, retries: int) -> None:
    drawn = initialized(points, len(points), 3, retries)
    np.testing.assert_array_equal(
        sorted(drawn.tolist(), key=repr), sorted(points.tolist(), key=repr)
    )


def test_chains_end_where_they_do_in_tensorflow() -> None:
    distances = np.array([i * 7 % 11 + 1 for i in range(30)], np.float32)
    ends = [
        int(raw_ops.KMC2ChainInitialization(distances=distances, seed=np.int64(seed)))
        for seed in (0, 1, 2, 3, -1, 10**15)
    ]
    assert ends == [29, 29, 28, 28, 29, 28]


@pytest.mark.parametrize(
    ("centers", "k"), [(1, 1), (30, 1), (30, 4), (2500, 1), (2500, 1100), (0, 3), (5, 0)]
)
def test_neighbors_are_the_nearest_and_of_equally_near_ones_the_first(centers: int, k: int) -> None:
    rng = np.random.default_rng(centers)
    points, others = (rng.integers(-9, 9, (n, 3)).astype(np.float32) for n in (600, centers))
    indices, distances = raw_ops.NearestNeighbors(points=points, centers=others, k=np.int64(k))
    squares = np.sum((points[:, None] - others[None]) ** 2, -1)
    order = np.argsort(squares, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(distances, np.take_along_axis(squares, order, 1))


@pytest.mark.parametrize(
    ("op", "wrong", "message"),
    [
        ("KmeansPlusPlusInitialization", {"points": POINTS[0]}, "should be a matrix"),
        ("KmeansPlusPlusInitialization", {"points": POINTS[:0]}, "rows\\(\\) > 0"),
        ("KmeansPlusPlusInitialization", {"num_to_sample": np.int64(21)}, "21 vs 20"),
        ("KmeansPlusPlusInitialization", {"num_to_sample": np.int64(-1)}, "num_to_sample > 0"),
        (
            "KmeansPlusPlusInitialization",
            {"seed": np.zeros(2, np.int64)},
            "seed should be a scalar",
        ),
        ("KMC2ChainInitialization", {"distances": POINTS}, "should be a vector"),
        ("KMC2ChainInitialization", {"distances": POINTS[0, :0]}, "size\\(\\) > 0"),
        ("NearestNeighbors", {"centers": POINTS[:, :1]}, "2 vs 1"),
        ("NearestNeighbors", {"points": POINTS[:0]}, "rows\\(\\) > 0"),
        ("NearestNeighbors", {"k": np.int64(-1)}, "k >= 0"),
    ],
)
def test_bad_calls_are_refused(op: str, wrong: dict[str, Any], message: str) -> None:
    one = np.int64(1)
    right: dict[str, dict[str, Any]] = {
        "KmeansPlusPlusInitialization": {
            "points": POINTS,
            "num_to_sample": one,
            "seed": one,
            "num_retries_per_sample": one,
        },
        "KMC2ChainInitialization": {"distances": POINTS[0], "seed": one},
        "NearestNeighbors": {"points": POINTS, "centers": POINTS, "k": one},
    }
    with pytest.raises(InvalidArgumentError, match=message):
        getattr(raw_ops, op)(**{**right[op], **wrong})
