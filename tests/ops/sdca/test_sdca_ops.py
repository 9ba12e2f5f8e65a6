"""A step of SDCA gives TensorFlow's changes; the dual and the primal loss meet; bad batches are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opkernel import Graph, Session, raw_ops
from opkernel.errors import FailedPreconditionError, InvalidArgumentError

LOSSES = ["logistic_loss", "squared_loss", "hinge_loss", "smooth_hinge_loss", "poisson_loss"]


def step(loss: str = "logistic_loss", **changed: Any) -> Any:
    """A step on two examples that share no feature: one has dense features, and one sparse ones."""
    given: dict[str, Any] = {
        "sparse_example_indices": [np.int64([1, 1])],
        "sparse_feature_indices": [np.int64([40, 7])],
        "sparse_feature_values": [np.float32([1.5, -2])],
        "dense_features": [np.float32([[1, 2], [0, 0]])],
        "example_weights": np.float32([1, 2]),
        "example_labels": np.float32([1, 0]),
        "sparse_indices": [np.int64([7, 9, 40])],
        "sparse_weights": [np.float32([0.5, 9, -1])],
        "dense_weights": [np.float32([0.25, -0.75])],
        "example_state_data": np.float32([[0.5, 0, 0, 0], [-0.25, 0, 0, 0]]),
        "l1": 0.25,
        "l2": 2.0,
        "num_loss_partitions": 2,
        "num_inner_iterations": 1,
        "adaptive": False,
    }
    return raw_ops.SdcaOptimizerV2(loss_type=loss, **{**given, **changed})


@pytest.mark.parametrize(
    ("loss", "state", "sparse", "dense"),
    [  # from TensorFlow
        (
            "logistic_loss",
            [[0.623831, 1.40615, -0.693147, 1.0], [-0.197274, 0.239359, -1.12467, 2.0]],
            [-0.105453, 0.0, 0.0790894],
            [0.0619157, 0.123831],
        ),
        (
            "squared_loss",
            [[0.770833, 2.25781, -0.375, 1.0], [-0.0787037, 4.25391, 0.0625, 2.0]],
            [-0.342593, 0.0, 0.256944],
            [0.135417, 0.270833],
        ),
        (
            "hinge_loss",
            [[0.925, 2.125, -0.5, 1.0], [-0.165, 0.0, -0.5, 2.0]],
            [-0.17, 0.0, 0.1275],
            [0.2125, 0.425],
        ),
        (
            "smooth_hinge_loss",
            [[0.770833, 1.625, -0.375, 1.0], [-0.152778, 0.0, -0.4375, 2.0]],
            [-0.194444, 0.0, 0.145833],
            [0.135417, 0.270833],
        ),
        (
            "poisson_loss",
            [[0.560553, 1.44965, -0.846574, 1.0], [-0.209893, 0.254271, -1.19315, 2.0]],
            [-0.0802146, 0.0, 0.0601609],
            [0.0302763, 0.0605526],
        ),
    ],
)
def test_a_step_is_that_of_tensorflow(loss: str, state: Any, sparse: Any, dense: Any) -> None:
    found = step(loss)
    np.testing.assert_allclose(found[0], state, rtol=2e-5)
    np.testing.assert_allclose(found[1][0], sparse, rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(found[2][0], dense, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_steps_close_the_gap_between_the_problems(loss: str, adaptive: bool) -> None:
    rng = np.random.default_rng(5)
    features = rng.normal(size=(30, 4)).astype(np.float32)
    labels = (features @ [1, -2, 0.5, 0] > 0).astype(np.float32)
    weights, state = np.zeros(4, np.float32), np.zeros((30, 4), np.float32)
    l2 = np.float32(3)
    for _ in range(300 if adaptive else 60):  # each step draws the examples that it looks at
        state, _, (change,) = raw_ops.SdcaOptimizerV2(
            sparse_example_indices=[],
            sparse_feature_indices=[],
            sparse_feature_values=[],
            dense_features=[features],
            example_weights=np.ones(30, np.float32),
            example_labels=labels,
            sparse_indices=[],
            sparse_weights=[],
            dense_weights=[weights],
            example_state_data=state,
            loss_type=loss,
            adaptive=adaptive,
            l1=0.0,
            l2=float(l2),
            num_loss_partitions=1,
            num_inner_iterations=1,
        )
        weights = weights + change
    # The primal objective less the dual one, which is minus the dual losses less the same norm.
    gap = (state[:, 1].sum() + state[:, 2].sum() + l2 * weights @ weights) / 30
    np.testing.assert_allclose(weights, features.T @ state[:, 0] / l2, atol=1e-3)
    assert abs(gap) < 2e-2


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"example_labels": np.float32([1])}, "Expected 2 example labels but got 1"),
        ({"example_labels": np.float32([1, 3])}, "Only labels of 0.0 or 1.0"),
        ({"example_labels": np.float32([1, -1]), "loss": "poisson_loss"}, "Only non-negative"),
        ({"example_state_data": np.zeros((2, 3), np.float32)}, "Expected shape \\[2,4\\]"),
        ({"example_state_data": np.zeros(8, np.float32)}, "must be rank 2"),
        ({"dense_features": [np.zeros(2, np.float32)]}, "must be rank 2"),
        ({"dense_features": [np.zeros((2, 3), np.float32)]}, "More dense features than"),
        ({"dense_features": [np.zeros((2, 1), np.float32)]}, "there are 2 weights"),
        ({"dense_features": [np.zeros((1, 2), np.float32)]}, "1 examples instead of 2"),
        ({"sparse_example_indices": [np.int64([1])]}, "mismatched example_indices"),
        ({"sparse_feature_values": [np.float32([1])]}, "1 values of 2 features"),
        ({"sparse_feature_indices": [np.int64([40, 8])]}, "out of valid range: 8"),
        ({"sparse_feature_indices": [np.int64([7, 7])]}, "Duplicate index"),
        ({"sparse_weights": [np.float32([1])]}, "3 sparse_indices of 1 sparse_weights"),
    ],
)
def test_bad_batches_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        step(**changed)


def test_examples_after_a_descent_and_unknown_ones_have_no_features() -> None:
    for owners in ([1, 0], [-1, 1], [2, 5]):
        (_, (sparse,), _) = step(sparse_example_indices=[np.int64(owners)])
        assert np.count_nonzero(sparse) == (1 if owners == [1, 0] else 0)


def test_weights_shrink_in_place() -> None:
    graph = Graph()
    with graph.as_default():
        weights = raw_ops.VariableV2(shape=[4], dtype="float32")
        assign = raw_ops.Assign(ref=weights, value=np.float32([2, -3, 0.25, -0.5]))
        shrink = raw_ops.SdcaShrinkL1(weights=[weights], l1=1.0, l2=2.0)
    session = Session(graph)
    with pytest.raises(FailedPreconditionError):
        session.run(shrink)
    session.run(assign)
    session.run(shrink)
    assert session.run(weights).tolist() == [1.5, -2.5, 0, 0]


def test_fingerprints_are_those_of_tensorflow() -> None:
    texts = [
        bytes((i * 7 + n) % 256 for i in range(n))
        for n in (0, 1, 5, 12, 16, 17, 31, 40, 143, 144, 300)
    ]
    found = raw_ops.SdcaFprint(input=np.array(texts, object))
    assert found.tolist() == [
        [4463240938071824939, 4374473821787594281],
        [-3031513573221019310, -4975547386205173904],
        [-3885347967039884842, 6641893299761880429],
        [-2089716686487937480, 606791677902001339],
        [-143878671975529173, -1001422539681817232],
        [-297878190495770457, 497097386691029322],
        [3865243859734855421, 1924573662601850489],
        [9025425050300509821, -5274110308071518283],
        [1133767180607000595, -7802771042198866512],
        [5345387712913962805, -7600385498292688170],
        [5688742793642106390, -626192450358776532],
    ]
    assert raw_ops.SdcaFprint(input=np.array([], object)).shape == (0, 2)
