"""The same answers as an installed TensorFlow, in one process with it."""

import numpy as np
import pytest

import opkernel.types as ok
from opkernel.errors import InvalidArgumentError
from opkernel.proto import TensorProto
from opkernel.types import DataType, as_dtype, tensor_from_proto, tensor_to_proto

tf = pytest.importorskip("tensorflow")
pytestmark = pytest.mark.tensorflow

BASE_TYPES = [DataType(number) for number in range(1, 34)]
NUMBER_LIKE = [dtype for dtype in BASE_TYPES if dtype.can_memcpy]


def sample(dtype):
    """An array of shape [2, 3] with every byte that an element may have somewhere in it."""
    if dtype.is_bool:
        return np.array([[True, False, True]] * 2)
    content = np.arange(6 * dtype.size, dtype=np.uint8) * np.uint8(37) % 255
    return np.frombuffer(content.tobytes(), dtype.numpy_dtype).reshape(2, 3)


def tf_proto(message):
    return type(tf.make_tensor_proto(0)).FromString(message.SerializeToString())


def bits(array):
    return np.ascontiguousarray(array).tobytes()


@pytest.mark.parametrize("dtype", BASE_TYPES)
def test_facts_of_types(dtype):
    theirs = tf.dtypes.as_dtype(int(dtype))
    assert theirs.name == dtype.tf_name
    assert theirs.size == dtype.size
    assert theirs.is_floating == dtype.is_floating
    assert theirs.is_integer == dtype.is_integer
    assert theirs.is_unsigned == dtype.is_unsigned
    assert theirs.is_quantized == dtype.is_quantized
    assert theirs.is_complex == dtype.is_complex
    assert theirs._is_ref_dtype == dtype.is_ref
    assert tf.dtypes.as_dtype(dtype.string).as_datatype_enum == dtype
    assert tf.dtypes.as_dtype(int(dtype.ref)).name == dtype.ref.tf_name
    if dtype not in (ok.resource, ok.variant):
        assert np.dtype(theirs.as_numpy_dtype) == dtype.as_numpy_dtype
        assert as_dtype(theirs.as_numpy_dtype) is dtype


@pytest.mark.parametrize("dtype", ok.FLOATING_TYPES + ok.INTEGER_TYPES)
def test_least_and_greatest(dtype):
    theirs = tf.dtypes.as_dtype(int(dtype))
    assert float(theirs.min) == pytest.approx(float(dtype.min), rel=1e-4)
    assert float(theirs.max) == pytest.approx(float(dtype.max), rel=1e-4)


@pytest.mark.parametrize("dtype", NUMBER_LIKE)
def test_tensorflow_reads_ours(dtype):
    array = sample(dtype)
    theirs = tf.make_ndarray(tf_proto(tensor_to_proto(array, dtype)))
    assert theirs.shape == (2, 3)
    assert bits(theirs) == bits(array)
    if dtype is not ok.bool_ and dtype.is_numeric:
        loaded = tf.raw_ops.ParseTensor(
            serialized=tensor_to_proto(array, dtype).SerializeToString(), out_type=int(dtype)
        )
        assert bits(loaded.numpy()) == bits(array)


def test_tensorflow_reads_our_strings():
    array = np.array([[b"a\0", b""], [b"\xff", "é".encode()]], object)
    message = tensor_to_proto(array)
    assert tf.make_ndarray(tf_proto(message)).tolist() == array.tolist()
    loaded = tf.io.parse_tensor(message.SerializeToString(), tf.string)
    assert loaded.numpy().tolist() == array.tolist()


# tf.make_tensor_proto has no code to write these one by one.
NOT_AS_VALUES = (ok.float8_e4m3fnuz, ok.float8_e4m3b11fnuz, ok.float8_e5m2fnuz)


@pytest.mark.parametrize(
    ("dtype", "repeated"),
    [(dtype, False) for dtype in NUMBER_LIKE]
    + [(dtype, True) for dtype in NUMBER_LIKE if dtype not in NOT_AS_VALUES],
)
def test_we_read_what_the_python_api_writes(dtype, repeated):
    """Content for arrays; values, compressed or not, for scalars and some types."""
    array = sample(dtype)
    if repeated:
        array = array[0, :1]
    users = array.view(dtype.as_numpy_dtype) if dtype.is_quantized else array
    shape = [4] if repeated else None
    written = tf.make_tensor_proto(users, dtype=int(dtype), shape=shape)
    read = tensor_from_proto(TensorProto.FromString(written.SerializeToString()))
    expected = np.repeat(array, 4) if repeated else array
    assert read.shape == expected.shape
    if dtype.is_floating or dtype.is_complex:  # in values a NaN may become a quiet one
        np.testing.assert_array_equal(read.astype(complex), expected.astype(complex))
    else:
        assert read.tolist() == expected.tolist()


@pytest.mark.parametrize(
    "value",
    [5, 2**40, -1.5, True, 1j, [1, 2.5], [[1], [2]], "é", [b"a\0", b""], np.float64(3), [2**31, 0]],
)
def test_same_types_for_python_values(value):
    ours, theirs = tensor_to_proto(value), tf.make_tensor_proto(value)
    assert ours.dtype == theirs.dtype
    assert tf.make_ndarray(tf_proto(ours)).tolist() == tf.make_ndarray(theirs).tolist()


@pytest.mark.parametrize("dtype", [dtype for dtype in BASE_TYPES if dtype.is_numeric])
def test_same_values_from_each_field(dtype):
    """A Const node of TensorFlow's runtime, and our reading of its value."""
    message = TensorProto(dtype=dtype, tensor_shape=ok.TensorShape([4]).to_proto())
    message.float_val.extend([1.5, -2])
    message.double_val.extend([2.5, 0.1])
    message.int_val.extend([-300, 70000])
    message.half_val.extend([15360, 81792])
    message.scomplex_val.extend([1, 2, 3])
    message.dcomplex_val.extend([1, 2, 3, 4])
    message.int64_val.extend([-5])
    message.uint32_val.extend([2**32 - 1])
    message.uint64_val.extend([2**64 - 1, 1, 2, 3, 4])
    with tf.Graph().as_default() as graph:
        node = tf.compat.v1.NodeDef(name="value", op="Const")
        node.attr["dtype"].type = int(dtype)
        node.attr["value"].tensor.CopyFrom(tf_proto(message))
        tf.import_graph_def(tf.compat.v1.GraphDef(node=[node]), name="")
        with tf.compat.v1.Session(graph=graph) as session:
            theirs = session.run("value:0")
    assert bits(tensor_from_proto(message)) == bits(theirs)


@pytest.mark.parametrize(
    ("content", "is_valid"),
    [(b"\1\2\0abb", True), (b"\1\2\0abbc", False), (b"\1\2", False), (b"\0\0\0", True)],
)
def test_same_strings_from_content(content, is_valid):
    message = TensorProto(
        dtype=ok.string, tensor_shape=ok.TensorShape([3]).to_proto(), tensor_content=content
    )
    try:
        theirs = tf.io.parse_tensor(message.SerializeToString(), tf.string).numpy().tolist()
    except tf.errors.InvalidArgumentError:
        theirs = None
    assert (theirs is not None) == is_valid
    if is_valid:
        assert tensor_from_proto(message).tolist() == theirs
    else:
        with pytest.raises(InvalidArgumentError):
            tensor_from_proto(message)
