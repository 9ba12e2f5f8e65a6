"""ParseExampleDataset, compressed elements and sizes of batches. Expected values are TensorFlow's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opkernel
from opkernel import errors, raw_ops
from opkernel.data import Dataset
from opkernel.proto import Example
from opkernel.types import DataType, object_scalar

INT64 = DataType.DT_INT64


def example(**features):
    made = Example()
    for key, values in features.items():
        feature = made.features.feature[key]
        kind = {float: "float_list", int: "int64_list", bytes: "bytes_list"}[type(values[0])]
        getattr(feature, kind).value.extend(values)
    return made.SerializeToString()


BATCHES = [
    [
        example(d=[1.5], s=[b"x", b"y"], r=[1, 2, 3]),
        example(s=[b"z"], v=[7]),
    ],
    [example(d=[2.5], v=[8, 9])],
    [example(d=[1])],
    [example(d=[3.5])],
]
"""The third one has a feature of another type."""


def parsed(**changes):
    datasets = [Dataset.from_tensors(np.array(batch, object)) for batch in BATCHES]
    source = datasets[0]
    for dataset in datasets[1:]:
        source = source.concatenate(dataset)
    arguments = {
        "input_dataset": source.variant_tensor,
        "num_parallel_calls": np.int64(2),
        "dense_defaults": [np.array([0], np.int64), np.float32(0.5)],
        "sparse_keys": ["s"],
        "dense_keys": ["v", "d"],
        "ragged_keys": ["r"],
        "sparse_types": [DataType.DT_STRING],
        "dense_shapes": [[None], []],
        "ragged_value_types": [INT64],
        "ragged_split_types": [DataType.DT_INT32],
        "output_types": [DataType.DT_FLOAT, DataType.DT_VARIANT, DataType.DT_VARIANT, INT64],
        "output_shapes": [[None], [], [3], [None, None]],
        "deterministic": "default",
    }
    return Dataset(
        raw_ops.ParseExampleDatasetV2(**arguments | changes),
        tuple([opkernel.TensorSpec(None, dtype) for dtype in arguments["output_types"]]),
    )


def shown(element):
    dense, ragged, sparse, padded = element
    splits, values = raw_ops.RaggedTensorFromVariant(
        encoded_ragged=ragged,
        input_ragged_rank=1,
        output_ragged_rank=1,
        Tvalues=INT64,
        Tsplits=DataType.DT_INT32,
    )
    of_sparse = raw_ops.DeserializeSparse(serialized_sparse=sparse, dtype=DataType.DT_STRING)
    rows = [splits[0].tolist(), values.tolist()]
    return dense.tolist(), rows, [part.tolist() for part in of_sparse], padded.tolist()


@pytest.mark.parametrize("saved_at", range(4))
def test_features_come_in_the_order_of_their_keys(saved_at):
    dataset = parsed()
    assert dataset.cardinality() == 4
    elements = iter(dataset)
    found = []
    for number in range(4):
        if number == saved_at:
            again = iter(dataset)
            again.restore(elements.save())
            elements = again
        try:
            found.append(shown(next(elements)))
        except errors.InvalidArgumentError:
            found.append("wrong")
    sparse = [[[0, 0], [0, 1], [1, 0]], [b"x", b"y", b"z"], [2, 2]]
    assert found == [
        ([1.5, 0.5], [[0, 3, 3], [1, 2, 3]], sparse, [[0], [7]]),
        ([2.5], [[0, 0], []], [[], [], [1, 0]], [[8, 9]]),
        "wrong",
        ([3.5], [[0, 0], []], [[], [], [1, 0]], [[]]),
    ]
    assert next(elements, "END") == "END"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_parallel_calls": np.int64(0)}, "num_parallel_calls"),
        ({"deterministic": "maybe"}, "maybe"),
        ({"dense_keys": ["v", "s"]}, "Duplicate key"),
        ({"dense_defaults": [np.zeros(2, np.int64), np.float32(0)]}, "exactly one element"),
        ({"dense_defaults": [np.zeros(1, np.int64), np.ones(3, np.float32)]}, "not compatible"),
        ({"sparse_keys": ["s", "t"]}, "2 sparse keys"),
        ({"input_dataset": Dataset.range(3).variant_tensor}, "parses strings"),
    ],
)
def test_what_cannot_be_parsed(changes, message):
    with pytest.raises(errors.InvalidArgumentError, match=message):
        parsed(**changes)


COMPONENTS = [
    np.array([1.5, -2], np.float32),
    np.array([[b"ab"], [b"cd" * 60]], object),
    np.True_,
    np.zeros([0, 2], np.int64),
]
TYPES = [DataType.DT_FLOAT, DataType.DT_STRING, DataType.DT_BOOL, INT64]
RECORDED = (
    b'\x08\x15\x12\x00"sr\n!tensorflow.data.CompressedElement\x12M\n\x17\x83\x01,\x00\x00\xc0?\x00'
    b"\x00\x00\xc0abcd\xfe\x02\x00\xd6\x02\x00\x00\x01\x12\x0b\x08\x01\x12\x04\x12\x02\x08\x02"
    b'"\x01\x08\x12\x10\x08\x07\x12\x08\x12\x02\x08\x02\x12\x02\x08\x01"\x02\x02x\x12\x07\x08\n'
    b'\x12\x00"\x01\x01\x12\n\x08\t\x12\x06\x12\x00\x12\x02\x08\x02'
)
"""What TensorFlow makes of these components, as a serialized tensor."""
SHAPES = [None] * 4


def same(found, expected):
    return all(
        np.asarray(one, other.dtype).tolist() == other.tolist()
        for one, other in zip(found, expected, strict=True)
    )


def test_elements_that_tensorflow_compressed():
    compressed = raw_ops.ParseTensor(serialized=RECORDED, out_type=DataType.DT_VARIANT)
    found = raw_ops.UncompressElement(
        compressed=compressed, output_types=TYPES, output_shapes=SHAPES
    )
    assert same(found, COMPONENTS)


@given(st.lists(st.lists(st.binary(max_size=9), max_size=4), min_size=1, max_size=3), st.booleans())
def test_elements_that_are_compressed(strings, through_bytes):
    components = [np.array(texts, object) for texts in strings]
    numbers = np.frombuffer(b"".join(text for texts in strings for text in texts), np.uint8)
    compressed = raw_ops.CompressElement(components=[*components, numbers])
    if through_bytes:
        text = raw_ops.SerializeTensor(tensor=compressed)
        compressed = raw_ops.ParseTensor(serialized=text, out_type=DataType.DT_VARIANT)
    types = [DataType.DT_STRING] * len(components) + [DataType.DT_UINT8]
    found = raw_ops.UncompressElement(
        compressed=compressed, output_types=types, output_shapes=[None] * len(types)
    )
    assert same(found, [*components, numbers])


def test_elements_that_are_not_as_the_node_says():
    compressed = raw_ops.CompressElement(components=COMPONENTS)
    for types in (TYPES[:3], [INT64, *TYPES[1:]]):
        with pytest.raises(errors.FailedPreconditionError, match="Expected"):
            raw_ops.UncompressElement(
                compressed=compressed, output_types=types, output_shapes=[None] * len(types)
            )
    dataset = Dataset.range(3).variant_tensor
    with pytest.raises(errors.InvalidArgumentError, match="compressed element"):
        raw_ops.UncompressElement(compressed=dataset, output_types=TYPES, output_shapes=SHAPES)


@given(st.integers(40, len(RECORDED) - 1), st.integers(0, 255))
def test_damaged_elements(place, byte):
    damaged = bytearray(RECORDED)
    damaged[place] = byte
    try:
        compressed = raw_ops.ParseTensor(serialized=bytes(damaged), out_type=DataType.DT_VARIANT)
        raw_ops.UncompressElement(compressed=compressed, output_types=TYPES, output_shapes=SHAPES)
    except errors.OpError:
        pass


def test_the_size_of_batches():
    batches = Dataset.range(100).batch(5)
    expected = [
        (batches, 5),
        (batches.filter(lambda x: True).take(3).repeat().shuffle(4).prefetch(2), 5),
        (Dataset.range(9).padded_batch(4), 4),
        (batches.batch(3), 3),
        (Dataset.zip((batches, batches.skip(1))), 5),
        (batches.concatenate(Dataset.range(9).batch(6)), -1),
        (batches.map(lambda x: x), -1),
        (batches.unbatch(), -1),
        (Dataset.range(3), -1),
    ]
    for dataset, size in expected:
        assert raw_ops.ComputeBatchSize(input_dataset=dataset.variant_tensor) == size
    with pytest.raises(errors.InvalidArgumentError):
        raw_ops.ComputeBatchSize(input_dataset=object_scalar(None))
