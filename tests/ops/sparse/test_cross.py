"""Crossed features: answers of TensorFlow."""

import numpy as np
import pytest

from opkernel import errors
from opkernel.testing import run_op

FIRST = np.array([[0, 0], [0, 1], [1, 0]])
SECOND = np.array([[0, 0], [1, 0], [1, 1]])
SHAPE = np.array([2, 2])
WORDS = np.array([b"a", b"b", b"c"], object)
NUMBERS = np.array([3, -4, 5])
DENSE = np.array([[7], [9]])
INDICES = [[0, 0], [0, 1], [1, 0], [1, 1]]


def crossed(op, values, *others, dense=(), **attrs):
    inputs = [[FIRST, SECOND], list(values), [SHAPE, SHAPE], list(dense), *others]
    found = run_op(op, inputs, attrs=attrs).outputs
    assert found[0].tolist() == INDICES
    assert found[2].tolist() == [2, 2]
    return found[1].tolist()


def test_words_and_numbers_are_joined():
    found = crossed("SparseCrossV2", [WORDS, NUMBERS], np.array(b"-", object), dense=[DENSE])
    assert found == [b"a-3-7", b"b-3-7", b"c--4-9", b"c-5-9"]


@pytest.mark.parametrize(
    ("values", "num_buckets", "expected"),
    [
        ([NUMBERS, NUMBERS], 100, [85, 66, 95, 31]),
        ([WORDS, NUMBERS], 100, [86, 64, 7, 7]),
    ],
)
def test_hashes_are_those_of_tensorflow(values, num_buckets, expected):
    attrs = {"hashed_output": True, "num_buckets": num_buckets, "hash_key": 956888297470}
    types = {"out_type": "int64", "internal_type": "int64"}
    assert crossed("SparseCross", values, **attrs, **types) == expected


@pytest.mark.parametrize(
    ("values", "is_strong", "dense", "expected"),
    [
        ([WORDS, NUMBERS], False, [DENSE],
         [6445583001801823340, 680484610395893572, 145538917261817914, 4650359459786211695]),
        ([WORDS, NUMBERS], True, [],
         [8019283932836604168, 7816449792524469357, 6409039940688406758, 1285316834704701828]),
        ([NUMBERS, NUMBERS], True, [],
         [3533395726036904558, 2037409941172085232, 5655012283597049872, 6359895478493579478]),
    ],
)  # fmt: skip
def test_salted_hashes_are_those_of_tensorflow(values, is_strong, dense, expected):
    others = [np.array(0), np.array(is_strong), np.array([137, 173])]
    assert crossed("SparseCrossHashed", values, *others, dense=dense) == expected


def test_only_sorted_rows_within_the_shape_are_reached():
    for rows, expected in (
        ([[0, 0], [1, 0], [0, 1]], [b"3", b"-4"]),
        ([[-1, 0], [1, 0], [9, 0]], []),
    ):
        inputs = [[np.array(rows)], [NUMBERS], [SHAPE], [], np.array(b"-", object)]
        assert run_op("SparseCrossV2", inputs).outputs[1].tolist() == expected


def test_too_many_combinations_are_refused_at_once():
    wide = np.zeros((1, 2**12), np.int64)
    inputs = [[], [], [], [wide] * 6, np.array(b"-", object)]
    with pytest.raises(errors.ResourceExhaustedError):
        run_op("SparseCrossV2", inputs, attrs={"N": 0, "sparse_types": []})
    huge = [[FIRST[:0]], [NUMBERS[:0]], [np.array([2**60, 1])], [], np.array(b"-", object)]
    with pytest.raises(errors.ResourceExhaustedError):
        run_op("SparseCrossV2", huge)


@pytest.mark.parametrize("count", [0, 2])
def test_as_many_values_as_indices(count):
    inputs = [[FIRST], [WORDS] * count, [SHAPE], [], np.array(b"_", object)]
    with pytest.raises(errors.InvalidArgumentError, match=f"Expected 1 input values, got {count}"):
        run_op("SparseCrossV2", inputs)
