"""The loop of CTCLoss gives the bits of the function of NumPy, and the losses of all ways counted one by one."""

import itertools
from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.ops.nn import ctc_loss
from opkernel.providers.loops import loops_run

pytest.importorskip("numba")

FORMS = ["numpy", "plain", "compiled"]
ATTRS: list[dict[str, bool]] = [
    {},
    {"ctc_merge_repeated": False},
    {"preprocess_collapse_repeated": True},
    {"ignore_longer_outputs_than_inputs": True},
]


def losses(form: Any, logits: Any, labels: Any, lengths: Any, **attrs: Any) -> list[Any]:
    places = [[row, column] for row, one in enumerate(labels) for column in range(len(one))]
    with loops_run(form):
        result = raw_ops.CTCLoss(
            inputs=logits,
            labels_indices=np.array(places, np.int64),
            labels_values=np.concatenate(labels).astype(np.int32),
            sequence_length=np.array(lengths, np.int32),
            **attrs,
        )
    return [np.asarray(one) for one in result]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("attrs", ATTRS, ids=str)
@pytest.mark.parametrize("scale", [1, 60])
def test_the_forms_give_the_same(dtype: Any, attrs: dict[str, bool], scale: int) -> None:
    random = np.random.default_rng(scale)
    logits = (random.normal(size=(30, 5, 6)) * scale).astype(dtype)
    labels = [random.integers(0, 5, size) for size in (10, 1, 7, 9, 3)]
    labels[3][:] = 5  # nothing but blanks
    lengths = [30, 2, 20, 30, 3]
    if attrs.get("ignore_longer_outputs_than_inputs"):
        lengths[2] = 5
    first, *others = (losses(form, logits, labels, lengths, **attrs) for form in FORMS)
    for other in others:
        for one, expected in zip(other, first, strict=True):
            np.testing.assert_array_equal(one, expected)


@pytest.mark.parametrize("form", FORMS)
def test_sequences_that_are_computed_in_parts(form: Any, monkeypatch: Any) -> None:
    random = np.random.default_rng(3)
    logits = random.normal(size=(9, 7, 4))
    labels = [random.integers(0, 3, 1 + size % 3) for size in range(7)]
    whole = losses(form, logits, labels, [9] * 7)
    monkeypatch.setattr(ctc_loss, "_STATES_AT_ONCE", 150)
    for one, expected in zip(losses(form, logits, labels, [9] * 7), whole, strict=True):
        np.testing.assert_array_equal(one, expected)


@pytest.mark.parametrize("form", FORMS)
def test_the_loss_is_that_of_all_ways(form: Any) -> None:
    logits = np.random.default_rng(5).normal(size=(4, 1, 3))
    y = np.exp(logits[:, 0]) / np.exp(logits[:, 0]).sum(axis=1, keepdims=True)
    likely = 0.0
    for way in itertools.product(range(3), repeat=4):
        if [label for label, _ in itertools.groupby(way) if label != 2] == [0, 1]:
            likely += np.prod(y[np.arange(4), way])
    loss, _ = losses(form, logits, [np.array([0, 1])], [4])
    np.testing.assert_allclose(loss, [-np.log(likely)], rtol=1e-6)
