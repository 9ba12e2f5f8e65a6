"""What messages say of values and of names."""

from __future__ import annotations

import re

import numpy as np
import pytest

from opkernel.messages import did_you_mean, short_repr


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.zeros((1000, 3), np.float32), "<ndarray float32[1000,3]>"),
        ([np.zeros(2), {"a": np.ones(1)}], "[<ndarray float64[2]>, {'a': <ndarray float64[1]>}]"),
        (list(range(100)), "[0, 1, 2, 3, ...]"),
        ("images:0", "'images:0'"),
        (3.5, "3.5"),
        (None, "None"),
    ],
)
def test_values_are_shown_without_their_elements(value: object, text: str) -> None:
    assert short_repr(value) == text


def test_long_values_are_cut() -> None:
    assert len(short_repr("x" * 10_000)) < 100
    assert len(short_repr({str(i): [i] * 100 for i in range(100)})) < 300


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Matmul", "; perhaps you mean MatMul or BatchMatMul"),
        ("matmul", "; perhaps you mean MatMul or BatchMatMul"),
        ("Conv", ""),
        ("Batch", "; perhaps you mean BatchMatMul"),
        ("_MatMul", "; perhaps you mean MatMul or _MklMatMul or BatchMatMul"),
    ],
)
def test_names_like_one_are_told(name: str, hint: str) -> None:
    assert did_you_mean(name, ["MatMul", "BatchMatMul", "Softmax", "_MklMatMul"]) == hint


def test_a_name_is_found_among_very_many() -> None:
    names = [f"model/layer_{i}/dense_{j}/MatMul" for i in range(100) for j in range(50)]
    hint = did_you_mean("model/layer_42/dens_7/MatMul", names)
    assert hint.startswith("; perhaps you mean model/layer_42/dense_7/MatMul or ")


def test_names_of_models_steer_no_terminal() -> None:
    assert re.fullmatch(r"[ -~]+", did_you_mean("image", ["images\x1b[2J"]))
