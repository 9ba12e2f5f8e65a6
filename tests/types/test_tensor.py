import struct
import time
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import opkernel.types as ok
from opkernel.errors import (
    InvalidArgumentError,
    OpError,
    ResourceExhaustedError,
    UnimplementedError,
)
from opkernel.proto import DecodeError, TensorProto, TensorShapeProto, VariantTensorDataProto
from opkernel.types import (
    DataType,
    OpaqueVariant,
    PartialTensorShape,
    ResourceHandle,
    TensorShape,
    Variant,
    tensor_from_proto,
    tensor_to_proto,
)

MEMCPY_TYPES = [dtype for dtype in DataType if dtype.can_memcpy]


def proto(dtype, sizes, **values):
    return TensorProto(dtype=dtype, tensor_shape=TensorShape(sizes).to_proto(), **values)


def read(dtype, sizes, **values):
    """The elements of a proto, as a list."""
    return tensor_from_proto(proto(dtype, sizes, **values)).tolist()


# -- bytes that TensorFlow 2.21 wrote -----------------------------------------------------------

WRITTEN_BY_PYTHON = [  # tf.make_tensor_proto
    ("08011204120208012a040000803f", "float32", [1.0]),
    ("080112002a0400004040", "float32", 3.0),
    ("080112041202080222080000803f00002040", "float32", [1.0, 2.5]),
    ("0812120062100000000000000000000000000000f03f", "complex128", 1j),
    ("08121204120208016210000000000000f03f0000000000000040", "complex128", [1 + 2j]),
    ("080e1204120208016a02c07f", "bfloat16", [1.5]),
    ("08131204120208016a02807c", "float16", [1.5]),
    ("080312003a0105", "int32", 5),
    ("080912005206808080808020", "int64", 2**40),
    ("0817120412020801" + "8a010103", "uint64", [3]),
    ("081612041202080182010103", "uint32", [3]),
    ("080a1204120208025a020100", "bool", [True, False]),
    ("081d1204120208023a0bffffffffffffffffff0102", "int4", [-1, 2]),
    ("081e1204120208023a020f03", "uint4", [15, 3]),
    ("081f1204120208023a14ffffffffffffffffff01feffffffffffffffff01", "int2", [-1, -2]),
    ("08181204120208019201013e", "float8_e5m2", [1.5]),
    ("081a1204120208022202c44c", "float8_e4m3fnuz", [-1.5, 3.0]),
    ("082112041202080222020b05", "float4_e2m1fn", [-1.5, 3.0]),
    ("080b12041202080222020102", "qint8", [1, 2]),
    ("080c12041202080222020102", "quint8", [1, 2]),
    ("080f120412020802220401000200", "qint16", [1, 2]),
    ("0810120412020802220401000200", "quint16", [1, 2]),
    ("080d12041202080222080100000002000000", "qint32", [1, 2]),
    ("0807120412020802420161420362c3a9", "string", [b"a", "bé".encode()]),
    ("08071200420178", "string", b"x"),
    ("08011206120012020802", "float32", []),
]
WRITTEN_BY_CPP = [  # the op SerializeTensor; the last two by the constant folder
    ("080112041202080222080000803f00000040", "float32", [1.0, 2.0]),
    ("08021204120208022210000000000000f03f0000000000000040", "float64", [1.0, 2.0]),
    ("080412041202080222020102", "uint8", [1, 2]),
    ("0805120412020802220401000200", "int16", [1, 2]),
    ("080612041202080222020102", "int8", [1, 2]),
    ("0807120412020802420261624200", "string", [b"ab", b""]),
    ("080812041202080222100000803f000000000000004000000000", "complex64", [1, 2]),
    ("0809120412020802221001000000000000000200000000000000", "int64", [1, 2]),
    ("080a12041202080222020100", "bool", [True, False]),
    ("080e1204120208022204803f0040", "bfloat16", [1.0, 2.0]),
    ("0811120412020802220401000200", "uint16", [1, 2]),
    ("08131204120208022204003c0040", "float16", [1.0, 2.0]),
    ("081612041202080222080100000002000000", "uint32", [1, 2]),
    ("0817120412020802221001000000000000000200000000000000", "uint64", [1, 2]),
    ("080a120812020802120208205a0101", "bool", [[True] * 32] * 2),
    ("080712041202082842017a", "string", [b"z"] * 40),
]


@pytest.mark.parametrize(("data", "name", "expected"), WRITTEN_BY_PYTHON + WRITTEN_BY_CPP)
def test_reads_what_tensorflow_writes(data, name, expected):
    array = tensor_from_proto(TensorProto.FromString(bytes.fromhex(data)))
    dtype = DataType.from_string(name)
    assert isinstance(array, np.ndarray)
    assert array.dtype == dtype.numpy_dtype
    assert array.tolist() == expected
    again = tensor_from_proto(tensor_to_proto(array, dtype))
    assert (again.dtype, again.shape, again.tolist()) == (array.dtype, array.shape, expected)


def test_reads_the_handle_of_a_variable():
    data = bytes.fromhex(
        "081412002268670a2c2f6a6f623a6c6f63616c686f73742f7265706c6963613a302f7461736b3a302f64657669"
        "63653a4350553a301209416e6f6e796d6f75731a03762f3020e5f3a5f0afa4949ef2012a124e313074656e736f"
        "72666c6f773356617245" + "32080801120412020802"
    )
    array = tensor_from_proto(TensorProto.FromString(data))
    assert array.shape == ()
    assert array.item() == ResourceHandle(
        device="/job:localhost/replica:0/task:0/device:CPU:0",
        container="Anonymous",
        name="v/0",
        hash_code=17454915466513971685,
        maybe_type_name="N10tensorflow3VarE",
        dtypes_and_shapes=(ok.DtypeAndShape(ok.float32, PartialTensorShape([2])),),
    )


TENSOR_LIST = bytes.fromhex(
    "08151200223f3e0a1674656e736f72666c6f773a3a54656e736f724c697374120c0001ffffffffffffffffff01"
    "1a0a080112002a040000803f1a0a080112002a0400000040"
)


def test_reads_a_tensor_list():
    proto = tensor_from_proto(TensorProto.FromString(TENSOR_LIST)).item().to_proto()
    assert proto.type_name == "tensorflow::TensorList"
    elements = [tensor_from_proto(tensor).item() for tensor in proto.tensors]
    assert elements == [1.0, 2.0]


# -- values, one by one -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "values", "expected"),
    [
        (ok.float32, {"float_val": [1, 2]}, [1.0, 2.0, 2.0]),
        (ok.float32, {"float_val": [1, 2, 3, 4]}, [1.0, 2.0, 3.0]),
        (ok.float32, {"int_val": [3]}, [0.0, 0.0, 0.0]),
        (ok.float64, {"float_val": [3]}, [0.0, 0.0, 0.0]),
        (ok.float64, {"double_val": [0.1]}, [0.1] * 3),
        (ok.float16, {"half_val": [15360, 65536]}, [1.0, 0.0, 0.0]),
        (ok.bfloat16, {"half_val": [16256, 81792]}, [1.0, 1.0, 1.0]),
        (ok.int8, {"int_val": [127, 128, -300]}, [127, -128, -44]),
        (ok.uint8, {"int_val": [127, 256, -1]}, [127, 0, 255]),
        (ok.uint16, {"int_val": [-1, 65536]}, [65535, 0, 0]),
        (ok.quint8, {"int_val": [300]}, [44] * 3),
        (ok.qint32, {"int_val": [-3]}, [-3] * 3),
        (ok.uint32, {"uint32_val": [2**32 - 1]}, [2**32 - 1] * 3),
        (ok.uint64, {"uint64_val": [2**64 - 1]}, [2**64 - 1] * 3),
        (ok.int64, {"int64_val": [-5]}, [-5] * 3),
        (ok.bool_, {"bool_val": [False, True]}, [False, True, True]),
        (ok.complex64, {"scomplex_val": [1, 2]}, [1 + 2j] * 3),
        (ok.complex64, {"scomplex_val": [1]}, [0j] * 3),
        (ok.complex64, {"scomplex_val": [1, 2, 3]}, [1 + 2j] * 3),
        (ok.complex128, {"dcomplex_val": [1, 2, 3, 4]}, [1 + 2j, 3 + 4j, 3 + 4j]),
        (ok.float8_e5m2, {"float8_val": b"\x3c\x40"}, [1.0, 2.0, 2.0]),
        (ok.float8_e4m3fn, {"float8_val": b"\x3c\x40\1\2"}, [1.5, 2.0, 0.001953125]),
        (ok.float8_e4m3fn, {"half_val": [1, 2]}, [0.0] * 3),
        (ok.float8_e4m3fnuz, {"float8_val": b"\x3c"}, [0.75] * 3),
        (ok.float8_e4m3b11fnuz, {"float8_val": b"\x3c"}, [0.09375] * 3),
        (ok.float8_e5m2fnuz, {"float8_val": b"\x3c"}, [0.5] * 3),
        (ok.float4_e2m1fn, {"float8_val": b"\3"}, [1.5] * 3),
        (ok.int4, {"int_val": [7, -8, 9]}, [7, -8, -7]),
        (ok.uint4, {"int_val": [15, 16, -1]}, [15, 0, 15]),
        (ok.int2, {"int_val": [1, -2, 2]}, [1, -2, -2]),
        (ok.uint2, {"int_val": [1, 3, 4]}, [1, 3, 0]),
        (ok.string, {"string_val": [b"a", b"b"]}, [b"a", b"b", b"b"]),
        (ok.string, {"string_val": [b"a", b"b", b"c", b"d"]}, [b"a", b"b", b"c"]),
    ],
)
def test_values_as_tensorflow_reads_them(dtype, values, expected):
    assert read(dtype, [3], **values) == expected
    assert read(dtype, [0], **values) == []
    assert read(dtype, [], **values) == expected[0]


@pytest.mark.parametrize("dtype", [DataType(number) for number in range(1, 34)])
def test_no_values_are_defaults(dtype):
    expected: object = 0
    if dtype is ok.string:
        expected = b""
    elif dtype is ok.resource:
        expected = ResourceHandle()
    elif dtype is ok.variant:
        expected = OpaqueVariant()
    assert read(dtype, [2, 1]) == [[expected], [expected]]
    array = tensor_from_proto(proto(dtype, []))
    assert isinstance(array, np.ndarray)
    assert (array.shape, array.item()) == ((), expected)


def test_bytes_win_over_values():
    assert read(ok.float32, [1], tensor_content=struct.pack("<f", 7), float_val=[3]) == [7.0]


def test_content_of_no_elements_is_not_looked_at():
    assert read(ok.float32, [0], tensor_content=b"abc") == []
    assert read(ok.string, [0], tensor_content=b"\2abb") == []


def test_content_is_viewed_and_read_only():
    array = tensor_from_proto(proto(ok.float32, [2], tensor_content=b"\0" * 8))
    assert not array.flags.writeable
    values = tensor_from_proto(proto(ok.float32, [2], float_val=[1]))
    assert values.flags.writeable


@pytest.mark.parametrize(
    ("dtype", "content", "expected"),
    [
        (ok.int4, b"\x01\x0f\xff", [1, -1, -1]),
        (ok.uint4, b"\x01\x1f\xff", [1, 15, 15]),
        (ok.int2, b"\x01\x02\xff", [1, -2, -1]),
        (ok.float4_e2m1fn, b"\x03\x0b\xff", [1.5, -1.5, -6.0]),
        (ok.string, b"\1\2\0abb", [b"a", b"bb", b""]),
    ],
)
def test_content(dtype, content, expected):
    assert read(dtype, [3], tensor_content=content) == expected


def test_long_string_in_content():
    assert read(ok.string, [1], tensor_content=b"\xac\x02" + b"x" * 300) == [b"x" * 300]


@pytest.mark.parametrize(
    ("dtype", "sizes", "content"),
    [
        (ok.float32, [3], b"abcd"),
        (ok.float32, [1], b"abcdefgh"),
        (ok.float32, [2], b"abcde"),
        (ok.int4, [4], b"\x21\x43"),
        (ok.bool_, [2], b"\2\0"),
        (ok.string, [2], b"\1\2abbccc"),
        (ok.string, [2], b"\1\5abb"),
        (ok.string, [], b"\2abb"),
        (ok.string, [2], b"\1"),
        (ok.string, [1], b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
        (ok.string, [2**20], b"\0"),
        (ok.resource, [1], b"\2\xff\xff"),
        (ok.variant, [1], b"\1\x0a"),
    ],
)
def test_content_that_does_not_fit(dtype, sizes, content):
    with pytest.raises(InvalidArgumentError, match="Cannot parse tensor from proto") as caught:
        read(dtype, sizes, tensor_content=content)
    assert f"{dtype.string} tensor of shape [{','.join(map(str, sizes))}]" in str(caught.value)


@pytest.mark.parametrize("number", [0, 101, 133])
def test_types_that_no_tensor_has(number):
    with pytest.raises(InvalidArgumentError, match="no tensor has type"):
        tensor_from_proto(TensorProto(dtype=number))


def test_number_of_no_type():
    with pytest.raises(InvalidArgumentError, match="77"):
        tensor_from_proto(TensorProto(dtype=77))


# -- what a proto may ask for -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ([-2], "[-2] is not fully defined"),
        ([-1, 2], "[?,2] is not fully defined"),
        ([2**62, 4], "[4611686018427387904,4] is too large"),
        ([2**62, 4, 0], "[4611686018427387904,4,0] is too large"),
        ([1] * 255, "too many dimensions"),
    ],
)
@pytest.mark.parametrize("values", [{}, {"float_val": [1]}, {"tensor_content": b"abcd"}])
def test_shapes_that_no_tensor_has(sizes, text, values):
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in sizes])
    with pytest.raises(InvalidArgumentError) as caught:
        tensor_from_proto(TensorProto(dtype=ok.float32, tensor_shape=shape, **values))
    assert text in str(caught.value)


def test_unknown_rank_is_read_as_a_scalar():
    shape = TensorShapeProto(unknown_rank=True)
    array = tensor_from_proto(TensorProto(dtype=ok.float32, tensor_shape=shape, float_val=[1]))
    assert (array.shape, array.item()) == ((), 1.0)


@pytest.mark.parametrize(
    ("dtype", "values", "bytes_each"),
    [
        (ok.float32, {"float_val": [1]}, 4),
        (ok.float32, {}, 4),
        (ok.string, {"string_val": [b"x"]}, 8),
        (ok.string, {"tensor_content": b"\0"}, 8),
        (ok.variant, {}, 8),
    ],
)
def test_memory_is_asked_for_before_it_is_taken(dtype, values, bytes_each):
    with pytest.raises(ResourceExhaustedError, match=r"\[1099511627776\]"):
        read(dtype, [2**40], **values)
    with pytest.raises(ResourceExhaustedError, match=f"takes {10 * bytes_each} bytes"):
        tensor_from_proto(proto(dtype, [10], **values), limit_bytes=10 * bytes_each - 1)


def test_limit_of_memory():
    message = proto(ok.float32, [10], float_val=[1])
    assert tensor_from_proto(message, limit_bytes=40).sum() == 10
    assert tensor_from_proto(message, limit_bytes=None).sum() == 10
    held = proto(ok.float32, [2], tensor_content=b"\0" * 8)
    assert tensor_from_proto(held, limit_bytes=0).shape == (2,)


def test_shapes_that_numpy_lacks():
    assert tensor_from_proto(proto(ok.float32, [1] * 64)).ndim == 64
    with pytest.raises(UnimplementedError, match="64 dimensions; got 65"):
        read(ok.float32, [1] * 65)
    with pytest.raises(InvalidArgumentError, match=r"\[0,4611686018427387904,4\]"):
        read(ok.float32, [0, 2**62, 4])


VALID_PROTOS = [bytes.fromhex(data) for data, _, _ in WRITTEN_BY_PYTHON + WRITTEN_BY_CPP] + [
    TENSOR_LIST
]


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(VALID_PROTOS), st.data())
def test_malformed_protos_are_refused_quickly(data, draw):
    """Bytes changed, dropped or added: an error of ours, or a tensor within the limit."""
    mutated = bytearray(data)
    for _ in range(draw.draw(st.integers(1, 4))):
        position = draw.draw(st.integers(0, len(mutated)))
        replacement = draw.draw(st.binary(max_size=3))
        mutated[position : position + draw.draw(st.integers(0, 3))] = replacement
    try:
        message = TensorProto.FromString(bytes(mutated))
    except DecodeError:
        return
    start = time.thread_time()
    try:
        array = tensor_from_proto(message, limit_bytes=2**20)
    except OpError:
        array = np.zeros(0)
    assert array.nbytes <= 2**20
    assert time.thread_time() - start < 5  # of the processor, whoever else it works for


# -- round trips --------------------------------------------------------------------------------


@given(
    st.sampled_from(MEMCPY_TYPES),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    st.data(),
)
def test_every_bit_of_numbers_survives(dtype, sizes, data):
    size_bytes = int(np.prod(sizes)) * dtype.size
    content = data.draw(st.binary(min_size=size_bytes, max_size=size_bytes))
    if dtype.is_bool:
        content = bytes(byte & 1 for byte in content)
    array = np.frombuffer(content, dtype.numpy_dtype).reshape(sizes)
    message = TensorProto.FromString(tensor_to_proto(array, dtype).SerializeToString())
    again = tensor_from_proto(message)
    assert message.dtype == dtype
    assert (again.dtype, again.shape) == (array.dtype, array.shape)
    assert again.tobytes() == array.tobytes()


def test_payload_of_nan_survives_in_values():
    quiet = np.frombuffer(struct.pack("<I", 0x7FC12345), np.float32)
    array = tensor_from_proto(proto(ok.float32, [2], float_val=[float(quiet[0])]))
    assert array.view(np.uint32).tolist() == [0x7FC12345] * 2


@given(hnp.arrays(object, hnp.array_shapes(min_dims=0, max_side=3), elements=st.binary()))
def test_strings_survive(array):
    again = tensor_from_proto(tensor_to_proto(array, ok.string))
    assert isinstance(again, np.ndarray)
    assert (again.shape, again.tolist()) == (array.shape, array.tolist())


def test_resources_and_variants_survive():
    handle = ResourceHandle(
        name="v",
        container="c",
        hash_code=2**64 - 1,
        dtypes_and_shapes=(ok.DtypeAndShape(ok.string, PartialTensorShape([None, 2])),),
        resource=object(),
    )
    variant = OpaqueVariant(
        VariantTensorDataProto(type_name="t", metadata=b"\0m", tensors=[tensor_to_proto(3)])
    )
    for value, dtype in [(handle, ok.resource), (variant, ok.variant)]:
        array = np.empty((1, 2), object)
        array[:] = value
        message = tensor_to_proto(array)
        assert message.dtype == dtype
        assert tensor_from_proto(message).tolist() == [[value, value]]


def test_resource_of_a_handle_is_not_written():
    message = ResourceHandle(name="v", resource=[1]).to_proto()
    assert ResourceHandle.from_proto(message).resource is None


class Pair(Variant):
    registered: ClassVar[str] = "test::Pair"

    def __init__(self, first, second):
        self.both = first, second

    def to_proto(self):
        return VariantTensorDataProto(
            type_name=self.registered, tensors=[tensor_to_proto(value) for value in self.both]
        )

    @classmethod
    def from_proto(cls, message):
        return cls(*(tensor_from_proto(tensor).item() for tensor in message.tensors))


def test_variants_with_a_decoder():
    ok.register_variant_decoder(Pair.registered, Pair.from_proto)
    array = np.array(Pair(1, b"two"), object)
    again = tensor_from_proto(tensor_to_proto(array)).item()
    assert isinstance(again, Pair)
    assert again.both == (1, b"two")


# -- what can be written ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "dtype", "elements"),
    [
        (5, ok.int32, 5),
        (2**40, ok.int64, 2**40),
        ([1, 2**31], ok.int64, [1, 2**31]),
        (1.5, ok.float32, 1.5),
        ([1, 2.5], ok.float32, [1.0, 2.5]),
        (1j, ok.complex128, 1j),
        (True, ok.bool_, True),
        ("é", ok.string, "é".encode()),
        ([b"a\0", b""], ok.string, [b"a\0", b""]),
        (np.float64(1.5), ok.float64, 1.5),
        (np.array([1, 2]), ok.int64, [1, 2]),
        (np.array(["a", "bc"]), ok.string, [b"a", b"bc"]),
        (np.array([1, 2], ">i4"), ok.int32, [1, 2]),
        (np.array([[1, 2], [3, 4]], np.int16).T, ok.int16, [[1, 3], [2, 4]]),
        (np.array([(-3,)], [("qint8", np.int8)]), ok.qint8, [-3]),
        ([], ok.float32, []),
    ],
)
def test_type_of_a_value(value, dtype, elements):
    message = tensor_to_proto(value)
    assert message.dtype == dtype
    assert tensor_from_proto(message).tolist() == elements


@pytest.mark.parametrize(
    ("value", "dtype", "elements"),
    [
        ([1, 2], ok.float16, [1.0, 2.0]),
        ([], ok.int32, []),
        (1.5, ok.bfloat16, 1.5),
        ([-8, 7], ok.int4, [-8, 7]),
        (np.int8(3), ok.qint8, 3),
        (3, ok.int64.ref, 3),
        ("a", ok.string, b"a"),
    ],
)
def test_value_of_a_given_type(value, dtype, elements):
    message = tensor_to_proto(value, dtype)
    assert message.dtype == dtype.base
    assert tensor_from_proto(message).tolist() == elements


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1.5, ok.int32),
        (300, ok.int8),
        (1j, ok.float32),
        ("a", ok.float32),
        (np.float32(3), ok.int32),
        (np.float32(3), ok.float64),
        (np.array([(1,)], [("qint8", np.int8)]), ok.int8),
        (3, ok.DataType.DT_INVALID),
        (3, ok.resource),
        (b"a", ok.variant),
        (ResourceHandle(), ok.string),
        ([1, [2]], None),
        (2**70, None),
        (object(), None),
        (None, None),
        ([b"a", 1], ok.string),
        (np.array(["2020"], "M8[Y]"), None),
    ],
)
def test_values_that_are_no_tensor(value, dtype):
    with pytest.raises(InvalidArgumentError):
        tensor_to_proto(value, dtype)


def test_tensor_of_more_than_a_proto_holds():
    array = np.broadcast_to(np.zeros(1, np.int8), (2**31,))
    with pytest.raises(InvalidArgumentError, match="2147483648 bytes"):
        tensor_to_proto(array)
