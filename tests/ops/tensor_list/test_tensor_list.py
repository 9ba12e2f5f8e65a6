"""Tensor lists: values that are never changed, checks, encodings; expected values are TensorFlow's."""

import contextlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, OpError, ResourceExhaustedError
from opkernel.graph import Graph
from opkernel.kernel import allocation_limit
from opkernel.ops.tensor_list.value import PersistentList, TensorList
from opkernel.proto import VariantTensorDataProto
from opkernel.types import DataType, OpaqueVariant, PartialTensorShape, variant_from_proto

FLOAT = DataType.DT_FLOAT
ANY = np.int32(-1)


def floats(*values: float) -> np.ndarray[Any, Any]:
    return np.array(values, np.float32)


def shape(*sizes: int) -> np.ndarray[Any, Any]:
    return np.array(sizes, np.int32)


def reserved(element_shape: Any, length: int, dtype: DataType = FLOAT) -> Any:
    return raw_ops.TensorListReserve(
        element_shape=element_shape, num_elements=length, element_dtype=dtype
    )


def empty(element_shape: Any, most: int = -1, dtype: DataType = FLOAT) -> Any:
    return raw_ops.EmptyTensorList(
        element_shape=element_shape, max_num_elements=most, element_dtype=dtype
    )


def with_item(handle: Any, index: int, *item: float, resize: bool = False) -> Any:
    return raw_ops.TensorListSetItem(
        input_handle=handle,
        index=index,
        item=floats(*item),
        resize_if_index_out_of_bounds=resize,
    )


def item(handle: Any, index: int, element_shape: Any = ANY) -> Any:
    return raw_ops.TensorListGetItem(
        input_handle=handle, index=index, element_shape=element_shape, element_dtype=FLOAT
    )


def stacked(handle: Any, element_shape: Any = ANY, **attrs: Any) -> Any:
    attrs.setdefault("element_dtype", FLOAT)
    tensor = raw_ops.TensorListStack(input_handle=handle, element_shape=element_shape, **attrs)
    return tensor.tolist()


def length(handle: Any) -> int:
    return int(raw_ops.TensorListLength(input_handle=handle))


# One set element of three; of a known and of an unknown shape; and two elements of unequal shapes.
PAIRS = with_item(reserved(shape(2), 3), 1, 1, 2)
ONE_SET = with_item(reserved(ANY, 3), 1, 1, 2)
UNEQUAL = with_item(ONE_SET, 2, 1, 2, 3)


def test_changes_leave_the_old_list_as_it_was() -> None:
    first = empty(shape(2))
    second = raw_ops.TensorListPushBack(input_handle=first, tensor=floats(1, 2))
    third = raw_ops.TensorListPushBack(input_handle=second, tensor=floats(3, 4))
    fourth = with_item(third, 0, 9, 9)
    fifth, last = raw_ops.TensorListPopBack(
        input_handle=third, element_shape=ANY, element_dtype=FLOAT
    )
    assert [length(h) for h in (first, second, third, fourth, fifth)] == [0, 1, 2, 2, 1]
    assert stacked(third) == [[1, 2], [3, 4]]
    assert stacked(fourth) == [[9, 9], [3, 4]]
    assert last.tolist() == [3, 4]


def test_elements_that_were_not_set_read_as_zeros() -> None:
    assert item(PAIRS, 0).tolist() == [0, 0]
    assert item(ONE_SET, 0).tolist() == [0, 0]  # the shape of the one that is set
    assert stacked(PAIRS) == [[0, 0], [1, 2], [0, 0]]
    assert item(reserved(ANY, 1), 0, shape(1, 2)).tolist() == [[0, 0]]
    handle = reserved(np.zeros(0, np.int32), 1, DataType.DT_STRING)
    text = raw_ops.TensorListStack(
        input_handle=handle, element_shape=ANY, element_dtype=DataType.DT_STRING
    )
    assert text.tolist() == [b""]


def test_element_shape() -> None:
    for dtype in (DataType.DT_INT32, DataType.DT_INT64):
        read = raw_ops.TensorListElementShape(
            input_handle=reserved(shape(2, -1), 1), shape_type=dtype
        )
        assert (read.tolist(), read.dtype) == ([2, -1], dtype.numpy_dtype)
    assert raw_ops.TensorListElementShape(input_handle=ONE_SET, shape_type=dtype) == -1


def test_resize() -> None:
    longer = raw_ops.TensorListResize(input_handle=PAIRS, size=5)
    assert stacked(longer) == [[0, 0], [1, 2], [0, 0], [0, 0], [0, 0]]
    assert stacked(raw_ops.TensorListResize(input_handle=longer, size=2)) == [[0, 0], [1, 2]]
    assert length(with_item(PAIRS, 5, 3, 4, resize=True)) == 6


def test_push_back_batch() -> None:
    handles = np.empty(2, object)
    handles[:] = [empty(shape(2)), PAIRS]
    pushed = raw_ops.TensorListPushBackBatch(
        input_handles=handles, tensor=np.array([[5, 6], [7, 8]], np.float32)
    )
    assert [stacked(handle) for handle in pushed] == [[[5, 6]], [[0, 0], [1, 2], [0, 0], [7, 8]]]


def test_gather() -> None:
    def gathered(*indices: int) -> Any:
        return raw_ops.TensorListGather(
            input_handle=ONE_SET, indices=shape(*indices), element_shape=ANY, element_dtype=FLOAT
        ).tolist()

    assert gathered(1, 0, 1) == [[1, 2], [0, 0], [1, 2]]
    for indices in [(), (0,), (3,), (-1,)]:
        with pytest.raises(InvalidArgumentError):
            gathered(*indices)


def test_scatter() -> None:
    rows = np.array([[1, 2], [3, 4]], np.float32)
    scattered = raw_ops.TensorListScatter(tensor=rows, indices=shape(3, 0), element_shape=ANY)
    assert stacked(scattered) == [[3, 4], [0, 0], [0, 0], [1, 2]]
    longer = raw_ops.TensorListScatterV2(
        tensor=rows, indices=shape(1, 0), element_shape=shape(2), num_elements=3
    )
    assert stacked(longer) == [[3, 4], [1, 2], [0, 0]]
    into = raw_ops.TensorListScatterIntoExistingList(
        input_handle=PAIRS, tensor=rows, indices=shape(0, 0)
    )
    assert stacked(into) == [[3, 4], [1, 2], [0, 0]]


def test_split_and_concat_are_inverse() -> None:
    tensor = np.arange(6, dtype=np.float32).reshape(3, 2)
    lengths = np.array([1, 0, 2], np.int64)
    parts = raw_ops.TensorListSplit(tensor=tensor, element_shape=shape(-1, 2), lengths=lengths)
    whole, found = raw_ops.TensorListConcat(input_handle=parts, element_dtype=FLOAT)
    np.testing.assert_array_equal(whole, tensor)
    np.testing.assert_array_equal(found, lengths)


CONCATS = [
    (ONE_SET, [], [0, 0, 1, 2, 0, 0], [2, 2, 2]),
    (ONE_SET, [4, 0], [0, 0, 0, 0, 1, 2, 0, 0], [4, 2, 2]),
    (UNEQUAL, [4], [0, 0, 0, 0, 1, 2, 1, 2, 3], [4, 2, 3]),
    (PAIRS, [], [0, 0, 1, 2, 0, 0], [2, 2, 2]),
]


@pytest.mark.parametrize(("handle", "leading", "values", "lengths"), CONCATS)
def test_concat_of_elements_that_were_not_set(
    handle: Any, leading: list[int], values: list[float], lengths: list[int]
) -> None:
    whole, found = raw_ops.TensorListConcatV2(
        input_handle=handle,
        element_shape=ANY,
        leading_dims=np.array(leading, np.int64),
        element_dtype=FLOAT,
    )
    assert (whole.tolist(), found.tolist()) == (values, lengths)


def test_concat_lists() -> None:
    def joined(a: Any, b: Any) -> Any:
        return raw_ops.TensorListConcatLists(input_a=a, input_b=b, element_dtype=FLOAT)

    assert stacked(joined(PAIRS, PAIRS)) == [[0, 0], [1, 2], [0, 0]] * 2
    with pytest.raises(InvalidArgumentError, match=r"not identical at index 0.*\[2\].*unknown"):
        joined(PAIRS, ONE_SET)


def test_lists_of_lists() -> None:
    scalars = np.zeros(0, np.int32)
    outer = raw_ops.TensorListPushBack(
        input_handle=empty(scalars, dtype=DataType.DT_VARIANT), tensor=np.array(PAIRS, object)
    )
    doubled = raw_ops.AddN(inputs=[np.array(outer, object)] * 2)
    inner = raw_ops.TensorListGetItem(
        input_handle=doubled, index=0, element_shape=scalars, element_dtype=DataType.DT_VARIANT
    )
    assert stacked(inner) == [[0, 0], [2, 4], [0, 0]]


def test_sum_and_zeros() -> None:
    handles = [np.array(handle, object) for handle in (ONE_SET, PAIRS, reserved(shape(2), 3))]
    total = raw_ops.AddN(inputs=handles)
    assert stacked(total) == [[0, 0], [2, 4], [0, 0]]
    assert stacked(raw_ops.ZerosLike(x=handles[0])) == [[0, 0]] * 3
    with pytest.raises(InvalidArgumentError, match="different lengths"):
        raw_ops.AddN(inputs=[handles[0], np.array(reserved(ANY, 9), object)])


ERRORS = [
    (lambda: with_item(PAIRS, 7, 1, 2), "Trying to modify element 7 in a list with 3 elements"),
    (lambda: with_item(PAIRS, -1, 1, 2, resize=True), "element -1 in a list"),
    (lambda: with_item(PAIRS, 0, 1, 2, 3), r"Item element shape: \[3\] list shape: \[2\]"),
    (lambda: item(PAIRS, 3), "Trying to access element 3 in a list with 3 elements"),
    (lambda: item(PAIRS, -1), "Trying to access element -1"),
    (lambda: item(PAIRS, 0, shape(7)), r"\[7\] vs. \[2\]"),
    (lambda: item(UNEQUAL, 0), r"\[2\] vs. \[3\]"),
    (lambda: item(reserved(ANY, 1), 0), "no list element is set"),
    (lambda: stacked(PAIRS, num_elements=4), "a list with 4 elements but got a list with 3"),
    (lambda: stacked(empty(shape(-1))), "empty list with non-fully-defined"),
    (lambda: stacked(PAIRS, element_dtype=DataType.DT_HALF), "elements half but list elements fl"),
    (lambda: stacked(np.array([PAIRS, PAIRS], object)), r"must be a scalar saw: \[2\]"),
    (lambda: stacked(np.array(OpaqueVariant(), object)), "not a list"),
    (lambda: reserved(ANY, -3), "non negative number, but got -3"),
    (lambda: reserved(5, 1), "only valid scalar shape tensor"),
    (lambda: reserved(np.ones((1, 1), np.int32), 1), "at most rank 1"),
    (
        lambda: raw_ops.TensorListFromTensor(tensor=floats(1, 2), element_shape=shape(3)),
        r"shape \[3\] from a tensor with shape \[\]",
    ),
    (
        lambda: raw_ops.TensorListPushBack(input_handle=empty(ANY, most=0), tensor=floats(1)),
        "list size: 0 max_num_elements: 0",
    ),
    (
        lambda: raw_ops.TensorListSplit(
            tensor=floats(1), element_shape=ANY, lengths=np.array([0], np.int64)
        ),
        "Length of tensor: 1 Values used: 0",
    ),
]


@pytest.mark.parametrize(("call", "message"), ERRORS)
def test_errors(call: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        call()


def test_memory_is_not_taken_beyond_the_limit() -> None:
    with allocation_limit(1 << 20):
        for call in (
            lambda: reserved(shape(2), 2**31 - 1),
            lambda: raw_ops.TensorListResize(input_handle=PAIRS, size=2**31 - 1),
            lambda: with_item(PAIRS, 2**31 - 2, 1, 2, resize=True),
            lambda: item(reserved(shape(2**20, 2**10), 1), 0),
        ):
            with pytest.raises(ResourceExhaustedError):
                call()


# VariantTensorDataProto of `ONE_SET` and of an empty list, as TensorFlow writes them.
WRITTEN = bytes.fromhex(
    "0a1674656e736f72666c6f773a3a54656e736f724c697374121202000201ffffffffffffffffff01120208021a"
    "1208011204120208022a080000803f00000040"
)
WRITTEN_EMPTY = bytes.fromhex(
    "0a1674656e736f72666c6f773a3a54656e736f724c697374121400010512020802120b08ffffffffffffffffff01"
)


def test_tensorflow_s_encoding_is_read() -> None:
    value = variant_from_proto(VariantTensorDataProto.FromString(WRITTEN))
    assert isinstance(value, TensorList)
    assert stacked(np.array(value, object)) == [[0, 0], [1, 2], [0, 0]]
    assert value.element_shape == PartialTensorShape([2])
    assert value.max_num_elements == -1
    opaque = OpaqueVariant(VariantTensorDataProto.FromString(WRITTEN))  # read before the decoder
    assert stacked(np.array(opaque, object)) == [[0, 0], [1, 2], [0, 0]]


def test_tensorflow_s_encoding_is_written() -> None:
    assert PAIRS.to_proto().metadata == VariantTensorDataProto.FromString(WRITTEN).metadata
    assert empty(shape(2, -1), 5).to_proto().SerializeToString() == WRITTEN_EMPTY
    back = TensorList.from_proto(UNEQUAL.to_proto())
    assert [None if e is None else e.tolist() for e in back.elements] == [None, [1, 2], [1, 2, 3]]


@given(st.binary(max_size=12), st.integers(0, 2))
def test_malformed_encodings_are_refused(metadata: bytes, tensors: int) -> None:
    proto = PAIRS.to_proto()
    proto.metadata = metadata
    for _ in range(tensors):
        proto.tensors.add(dtype=FLOAT)
    with contextlib.suppress(OpError):
        assert isinstance(TensorList.from_proto(proto), TensorList)


def test_shapes_are_inferred_through_lists() -> None:
    graph = Graph()

    def add(op: str, *inputs: Any, **attrs: Any) -> Any:
        return graph.create_op(op, inputs, attrs=attrs).outputs

    def constant(value: Any) -> Any:
        return add("Const", value=np.asarray(value, np.int32), dtype=DataType.DT_INT32)[0]

    row = add("Placeholder", dtype=FLOAT, shape=[2, 3])[0]
    (handle,) = add("EmptyTensorList", constant([-1, 3]), constant(5), element_dtype=FLOAT)
    (pushed,) = add("TensorListPushBack", handle, row)
    popped, last = add("TensorListPopBack", pushed, constant(-1), element_dtype=FLOAT)
    (read,) = add("TensorListGetItem", popped, constant(0), constant([2, -1]), element_dtype=FLOAT)
    (whole,) = add("TensorListStack", popped, constant(-1), element_dtype=FLOAT, num_elements=4)
    shapes = [tensor.shape.as_list() for tensor in (pushed, last, read, whole)]
    assert shapes == [[], [None, 3], [2, 3], [4, None, 3]]
    with pytest.raises(
        InvalidArgumentError, match="dtype int32 but got list with element dtype fl"
    ):
        add("TensorListStack", popped, constant(-1), element_dtype=DataType.DT_INT32)


CHANGES = st.tuples(st.sampled_from(["replace", "append", "resize"]), st.integers(0, 400))


@given(st.integers(0, 200), st.lists(CHANGES, max_size=8))
def test_persistent_list_is_a_list(size: int, changes: list[tuple[str, int]]) -> None:
    made, model = PersistentList[int | None](range(size)), list[int | None](range(size))
    versions = [(made, model)]
    for change, number in changes:
        model = model.copy()
        if change == "append":
            made, model = made.appended(number), [*model, number]
        elif change == "resize":
            made = made.resized(number, None)
            model = (model + [None] * number)[:number]
        elif model:
            made = made.replaced(number % len(model), -1)
            model[number % len(model)] = -1
        versions.append((made, model))
    for made, model in versions:
        assert list(made) == model == [made[i] for i in range(len(made))]
    assert list(PersistentList.filled(size, 0)) == [0] * size
