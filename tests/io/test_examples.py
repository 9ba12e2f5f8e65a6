"""Example messages from NumPy values: what they hold, that they read back, and what is refused."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.io import (
    Example,
    example_from_values,
    sequence_example_from_values,
    values_of_example,
    values_of_sequence_example,
)

# TensorFlow's serialized Example(features={"i": int64_list [1, -2]}).
TENSORFLOWS = b"\n\x16\n\x14\n\x01i\x12\x0f\x1a\r\n\x0b\x01\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"


def test_an_example_is_as_tensorflow_writes_it() -> None:
    assert example_from_values({"i": [1, -2]}).SerializeToString() == TENSORFLOWS
    (values,) = values_of_example(TENSORFLOWS).values()
    assert values is not None
    assert values.tolist() == [1, -2]


@pytest.mark.parametrize(
    ("value", "kind", "held"),
    [
        (3, "int64_list", [3]),
        (True, "int64_list", [1]),
        (np.array([[1, 2], [3, 4]], np.uint8), "int64_list", [1, 2, 3, 4]),
        (np.array([], np.int32), "int64_list", []),
        (0.5, "float_list", [0.5]),
        (np.array([1.5], np.float16), "float_list", [1.5]),
        (1e300, "float_list", [np.inf]),
        ("h\u00e9", "bytes_list", [b"h\xc3\xa9"]),
        ([b"a\0", "b"], "bytes_list", [b"a\0", b"b"]),
        (["h\u00e9", b"\xff"], "bytes_list", [b"h\xc3\xa9", b"\xff"]),
        (np.array([b"x", b""], object), "bytes_list", [b"x", b""]),
        (None, None, None),
        ([], None, None),
    ],
)
def test_a_value_becomes_a_list_of_its_kind(value: Any, kind: str | None, held: Any) -> None:
    example = example_from_values({"x": value})
    assert example.features.feature["x"].WhichOneof("kind") == kind
    found = values_of_example(example)["x"]
    assert (None if found is None else found.tolist()) == held


@given(
    st.dictionaries(
        st.text(max_size=5),
        st.one_of(
            st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1),
            st.lists(st.floats(width=32, allow_nan=False), min_size=1),
            st.lists(st.binary(max_size=9), min_size=1),
        ),
        max_size=5,
    )
)
def test_values_read_back(features: dict[str, Any]) -> None:
    found = values_of_example(example_from_values(features).SerializeToString())
    assert {name: None if one is None else one.tolist() for name, one in found.items()} == features


def test_a_sequence_reads_back() -> None:
    example = sequence_example_from_values({"id": 7}, {"words": [["a", "b"], []], "times": [[0.5]]})
    context, lists = values_of_sequence_example(example.SerializeToString())
    assert [one.tolist() for one in context.values() if one is not None] == [[7]]
    (times,), (words, none) = lists["times"], lists["words"]
    assert times is not None
    assert times.tolist() == [0.5]
    assert words is not None
    assert words.tolist() == [b"a", b"b"]
    assert none is None


def test_the_ops_parse_what_was_made() -> None:
    text = np.array([example_from_values({"x": [1.0, 2.0]}).SerializeToString()], object)
    parsed = raw_ops.ParseExampleV2(
        serialized=text,
        names=np.array([], object),
        sparse_keys=np.array([], object),
        dense_keys=np.array([b"x"], object),
        ragged_keys=np.array([], object),
        dense_defaults=[np.zeros(0, np.float32)],
        num_sparse=0,
        sparse_types=[],
        ragged_value_types=[],
        ragged_split_types=[],
        dense_shapes=[[2]],
    )
    assert parsed.dense_values[0].tolist() == [[1, 2]]


@pytest.mark.parametrize(
    "value",
    [1j, object(), 2**63, [2**70], np.uint64(2**64 - 1), [[1], [1, 2]], [1.5, None], "\udc80"],
)
def test_what_no_feature_holds_is_refused(value: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        example_from_values({"x": value})


def test_what_is_no_example_is_refused() -> None:
    for text in (b"\xff\xff", 3):
        with pytest.raises(InvalidArgumentError, match="is no Example"):
            values_of_example(text)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="is no SequenceExample"):
        values_of_sequence_example(Example())  # type: ignore[arg-type]
