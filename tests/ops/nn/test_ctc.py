"""Connectionist temporal classification: answers of TensorFlow, and sums over all paths."""

import itertools
import math

import numpy as np
import pytest

import opkernel
from opkernel import errors
from opkernel.testing import run_op

X = np.random.default_rng(0).normal(size=(4, 2, 4))
LABELS = np.array([[0, 0], [0, 1], [1, 0]])
VALUES = np.array([1, 1, 2], np.int32)
LENGTHS = np.array([4, 4], np.int32)


def loss(indices=LABELS, values=VALUES, lengths=LENGTHS, x=X, **attrs):
    inputs = [x, np.array(indices), np.array(values, np.int32), np.array(lengths, np.int32)]
    return run_op("CTCLoss", inputs, attrs=attrs).outputs


@pytest.mark.parametrize(
    ("attrs", "lengths", "expected"),
    [
        ({}, [4, 4], [3.972202225530874, 3.7640661848281445]),
        ({"ctc_merge_repeated": False}, [4, 4], [4.009563446044922, 4.250762939453125]),
        ({"preprocess_collapse_repeated": True}, [4, 4], [3.7266759872436523, 3.764066457748413]),
        ({}, [2, 4], [math.inf, 3.764066457748413]),
        ({"ctc_merge_repeated": False}, [2, 4], [3.867218494415283, 4.250762939453125]),
        ({"ignore_longer_outputs_than_inputs": True}, [1, 4], [0, 3.764066457748413]),
    ],
)
def test_losses_are_those_of_tensorflow(attrs, lengths, expected):
    np.testing.assert_allclose(loss(lengths=lengths, **attrs)[0], expected, rtol=1e-6)


def test_the_loss_is_that_of_all_paths_together():
    x = X[:, :1, :3]
    y = np.exp(x[:, 0]) / np.exp(x[:, 0]).sum(axis=1, keepdims=True)

    def meaning(path):
        return [label for label, _ in itertools.groupby(path) if label != 2]

    paths = itertools.product(range(3), repeat=4)
    total = sum(math.prod(y[range(4), path]) for path in paths if meaning(path) == [1, 1])
    found = loss([[0, 0], [0, 1]], [1, 1], [4], x)[0]
    np.testing.assert_allclose(found, -np.log(total), rtol=1e-6)


def test_the_gradient_is_the_derivative():
    x, step = X[:, :1].copy(), 1e-3  # losses are precise to float only
    _, gradient = loss(LABELS[:2], VALUES[:2], [4], x)
    for place in np.ndindex(x.shape):
        ends = []
        for sign in (1, -1):
            moved = x.copy()
            moved[place] += sign * step
            ends.append(loss(LABELS[:2], VALUES[:2], [4], moved)[0][0])
        assert gradient[place] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=2e-4)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"lengths": [1, 4]}, "Not enough time"),
        ({"lengths": [5, 4]}, "sequence_length"),
        ({"lengths": [-1, 4]}, "sequence_length"),
        ({"lengths": [4]}, "batch_size"),
        ({"indices": [[0, 0]], "values": [1]}, "Labels length is zero in batch 1"),
        ({"indices": [[0, 0], [1, 0]], "values": [1, -1]}, "nonnegative"),
        ({"values": [3, 1, 2]}, "following a null label"),
        ({"indices": [[0, 0], [2, 0]], "values": [1, 1]}, "out of bounds"),
        ({"indices": [[1, 0], [0, 0]], "values": [1, 1]}, "out of order"),
        ({"x": X[:0]}, "Max time"),
    ],
)
def test_wrong_labels_are_refused(arguments, match):
    with pytest.raises(errors.InvalidArgumentError, match=match):
        loss(**arguments)


def decoded(op, x=X, lengths=(4, 3), **attrs):
    return run_op(op, [x, np.array(lengths, np.int32)], attrs=attrs).outputs


@pytest.mark.parametrize(
    ("attrs", "values"),
    [
        ({}, [2, 0, 2, 1, 1]),
        ({"merge_repeated": True}, [2, 0, 2, 1]),
        ({"blank_index": 0}, [2, 3, 3, 2, 1, 1]),
        ({"blank_index": -2}, [3, 3, 0, 1, 1]),
    ],
)
def test_the_greedy_decoder_takes_the_largest_input(attrs, values):
    outputs = decoded("CTCGreedyDecoder", **attrs)
    assert outputs[1].tolist() == values
    np.testing.assert_allclose(outputs[3], [[-2.627732276916504], [-2.451671838760376]], rtol=1e-6)


@pytest.mark.parametrize(
    ("attrs", "values", "scores"),
    [
        ({"beam_width": 3, "top_paths": 2}, [[2, 0, 2, 1], [0, 1]],
         [[-2.124655246734619, -2.9173049926757812], [-1.1390398740768433, -1.6323530673980713]]),
        ({"beam_width": 3, "top_paths": 2, "merge_repeated": False}, [[2, 0, 2, 1], [0, 0, 1]],
         [[-2.124655246734619, -2.9173049926757812], [-1.1390398740768433, -1.6323530673980713]]),
        ({"beam_width": 100, "top_paths": 1}, [[2, 0, 2, 1]],
         [[-1.9076756238937378], [-1.1390398740768433]]),
        ({"beam_width": 1, "top_paths": 1}, [[2, 0, 2, 1]],
         [[-2.483872652053833], [-1.7734630107879639]]),
    ],
)  # fmt: skip
def test_the_beam_search_finds_what_tensorflow_finds(attrs, values, scores):
    outputs = decoded("CTCBeamSearchDecoder", **attrs)
    count = attrs["top_paths"]
    assert [output.tolist() for output in outputs[count : 2 * count]] == values
    np.testing.assert_allclose(outputs[-1], scores, rtol=1e-6)


@pytest.mark.parametrize("op", ["CTCGreedyDecoder", "CTCBeamSearchDecoder"])
def test_decoders_refuse_wrong_inputs(op):
    attrs = {"beam_width": 3, "top_paths": 2} if op == "CTCBeamSearchDecoder" else {}
    with pytest.raises(errors.FailedPreconditionError, match="sequence_length"):
        decoded(op, lengths=(5, 3), **attrs)
    with pytest.raises(errors.FailedPreconditionError, match="batch_size"):
        decoded(op, lengths=(1,), **attrs)
    with pytest.raises(errors.InvalidArgumentError, match="empty"):
        decoded(op, x=X[:0], **attrs)


def test_a_beam_search_may_have_too_few_results():
    with pytest.raises(errors.InvalidArgumentError, match="Less leaves"):
        decoded("CTCBeamSearchDecoder", x=X[:, :, :1], beam_width=3, top_paths=2)
    with pytest.raises(errors.InvalidArgumentError, match="more paths than the beam width"):
        decoded("CTCBeamSearchDecoder", beam_width=1, top_paths=2)


@pytest.mark.parametrize(
    ("inputs", "attrs", "values"),
    [
        (np.zeros((4, 3)), {"beam_width": 4, "top_paths": 4}, [[0, 1], [1, 0], [0], [1]]),
        (np.zeros((3, 4)), {"beam_width": 5, "top_paths": 5}, [[2], [0], [1], [0, 1], [0, 2]]),
        (
            [[0, 1, 1], [0, 1, 0], [0, 1, 1], [1, 1, 0]],
            {"beam_width": 6, "top_paths": 6},
            [[1, 0], [1], [1, 1], [0, 1], [1, 0, 1], [0, 1, 0]],
        ),
        (
            [[1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 1, 0], [1, 1, 1, 1]],
            {"beam_width": 20, "top_paths": 5},
            [[1, 2], [1, 0], [1, 2, 0], [0, 2], [0, 2, 0]],
        ),
        ([[1, -1, 1, 0, -1]], {"beam_width": 3, "top_paths": 1}, [[0]]),
    ],
)
def test_equally_likely_sequences_stand_in_the_order_of_tensorflow(inputs, attrs, values):
    steps = np.asarray(inputs, np.float32)[:, np.newaxis]
    found = opkernel.raw_ops.CTCBeamSearchDecoder(
        inputs=steps, sequence_length=np.int32([len(steps)]), merge_repeated=False, **attrs
    )
    assert [path.tolist() for path in found[1]] == values


def test_labels_that_are_blanks_give_the_loss_that_tensorflow_gives():
    """Its sum over paths without labels counts the last step but one as an end, too."""
    inputs = np.log(np.float32([[0.25, 0.25, 0.5], [0.5, 0.25, 0.25], [0.4, 0.4, 0.2]]))[:, None]
    for count in (1, 2, 3):
        indices = np.int64([(0, place) for place in range(count)])
        found, gradient = loss(indices, np.full(count, 2), [3], inputs)
        np.testing.assert_allclose(found, [-np.log(0.5 * 0.25 * (1 + 0.2))], rtol=1e-5)
        expected = [[0.25, 0.25, 0.5 - 1], [0.5, 0.25, 0.25 - 1], [0.4, 0.4, 0.2 - 0.2 / 1.2]]
        np.testing.assert_allclose(gradient[:, 0], expected, atol=1e-6)
