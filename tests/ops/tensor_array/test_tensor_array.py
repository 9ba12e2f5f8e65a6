"""TensorArrays of all versions; expected values and errors are TensorFlow's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opkernel import Graph, Session, raw_ops
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.graph import Tensor
from opkernel.types import DataType, PartialTensorShape, bool_, float32, int32, string

FLOW = np.float32(0)
ANY = PartialTensorShape()


def floats(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, np.float32)


def ints(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, np.int32)


class Array:
    """An array through eager calls of its ops."""

    def __init__(
        self, size: int, dtype: DataType = float32, handle: Any = None, **attrs: Any
    ) -> None:
        self.dtype = dtype
        self.handle = handle
        if handle is None:
            self.handle = raw_ops.TensorArrayV3(size=size, dtype=dtype, **attrs).handle

    def write(self, index: int, value: Any) -> None:
        raw_ops.TensorArrayWriteV3(handle=self.handle, index=index, value=value, flow_in=FLOW)

    def read(self, index: int) -> Any:
        return raw_ops.TensorArrayReadV3(
            handle=self.handle, index=index, flow_in=FLOW, dtype=self.dtype
        )

    def gather(self, *indices: int, element_shape: PartialTensorShape = ANY) -> Any:
        return raw_ops.TensorArrayGatherV3(
            handle=self.handle,
            indices=ints(*indices),
            flow_in=FLOW,
            dtype=self.dtype,
            element_shape=element_shape,
        )

    def scatter(self, indices: list[int], value: Any) -> None:
        raw_ops.TensorArrayScatterV3(
            handle=self.handle, indices=ints(*indices), value=value, flow_in=FLOW
        )

    def split(self, value: Any, *lengths: int) -> None:
        raw_ops.TensorArraySplitV3(
            handle=self.handle, value=value, lengths=np.array(lengths, np.int64), flow_in=FLOW
        )

    def concat(self, row_shape: PartialTensorShape = ANY) -> list[list[Any]]:
        value, lengths = raw_ops.TensorArrayConcatV3(
            handle=self.handle, flow_in=FLOW, dtype=self.dtype, element_shape_except0=row_shape
        )
        return [value.tolist(), lengths.tolist()]

    def size(self) -> Any:
        return raw_ops.TensorArraySizeV3(handle=self.handle, flow_in=FLOW)

    def close(self) -> None:
        raw_ops.TensorArrayCloseV3(handle=self.handle)

    def gradient(self, source: str = "g") -> "Array":
        made = raw_ops.TensorArrayGradV3(handle=self.handle, flow_in=FLOW, source=source)
        return Array(0, self.dtype, made.grad_handle)

    def gradient_with_shape(self, *prepended: int) -> "Array":
        made = raw_ops.TensorArrayGradWithShape(
            handle=self.handle, flow_in=FLOW, shape_to_prepend=ints(*prepended), source="s"
        )
        return Array(0, self.dtype, made.grad_handle)


def written(*values: Any, **attrs: Any) -> Array:
    array = Array(len(values), **attrs)
    for index, value in enumerate(values):
        array.write(index, value)
    return array


def test_elements_are_read_once() -> None:
    array = written(floats(1, 2), floats(3))
    assert array.read(0).tolist() == [1, 2]
    with pytest.raises(InvalidArgumentError, match="Could not read index 0 twice"):
        array.read(0)
    with pytest.raises(InvalidArgumentError, match="it has already been read"):
        array.write(0, floats(1))


def test_elements_that_are_not_cleared_are_read_often() -> None:
    array = written(floats(1), clear_after_read=False)
    array.read(0)[:] = 7
    assert array.gather(0, 0).tolist() == [[1], [1]]


@pytest.mark.parametrize(
    ("use", "text"),
    [
        (lambda a: a.write(0, floats(1)), "it has already been written to"),
        (lambda a: a.write(3, floats(1)), "index 3 but array is not resizeable and size is: 3"),
        (lambda a: a.write(-1, floats(1)), "Tried to write to index -1"),
        (lambda a: a.write(1, ints(1)), "dtype is float but Op is trying to write dtype int32"),
        (lambda a: a.write(ints(1), floats(1)), r"must be scalar, but had shape: \[1\]"),
        (lambda a: a.read(7), "Tried to read from index 7 but array size is: 3"),
        (lambda a: a.read(1), "the element shape is not fully defined: <unknown>"),
        (lambda a: Array(0, int32, a.handle).read(0), "Op requested dtype int32"),
        (lambda a: a.scatter([3], floats([1])), r"must be < array size \(3 vs. 3\)"),
        (lambda a: a.scatter([1, 2], floats([1])), "saw: 2 vs. 1"),
        (lambda a: a.scatter([], np.float32(1)), "at least a vector"),
        (lambda a: a.scatter([1, 1], floats([1], [2])), "already been written to"),
        (lambda a: a.split(floats(1, 2), 1, 1), r"size of lengths \(3 vs. 2\)"),
        (lambda a: a.split(floats(1, 2), 1, 1, 1), "sum of lengths is 3"),
        (lambda a: a.split(floats(1, 2), 3, -1, 0), "lengths to be >= 0"),
        (lambda a: a.split(np.float32(1), 1), "at least a vector"),
        (lambda a: a.gather(0, element_shape=PartialTensorShape([3])), "shape"),
        (lambda a: a.gather(0, 5), "array size is: 3"),
    ],
)
def test_wrong_uses(use: Callable[[Array], Any], text: str) -> None:
    array = Array(3)
    array.write(0, floats(1, 2))
    with pytest.raises(InvalidArgumentError, match=text):
        use(array)


def test_sizes_are_checked() -> None:
    with pytest.raises(InvalidArgumentError, match="Size should be >= 0"):
        Array(-1)
    with pytest.raises(InvalidArgumentError, match="size must be scalar"):
        raw_ops.TensorArrayV3(size=[1], dtype=float32)


def test_elements_of_known_shape_that_were_not_written_are_zeros() -> None:
    shape = PartialTensorShape([2])
    assert Array(2, element_shape=shape).read(1).tolist() == [0, 0]
    assert Array(2, bool_, element_shape=shape).read(1).tolist() == [False, False]
    with pytest.raises(InvalidArgumentError, match="TensorSetZero type not supported: string"):
        Array(2, string, element_shape=shape).read(1)
    assert Array(2, string, element_shape=PartialTensorShape([0])).read(1).shape == (0,)


def test_shapes_of_elements_are_checked() -> None:
    array = Array(2, element_shape=PartialTensorShape([None, 2]))
    with pytest.raises(InvalidArgumentError, match=r"inferred element shape: \[\?,2\]"):
        array.write(0, floats([1]))
    alike = written(floats(1), identical_element_shapes=True, dynamic_size=True)
    with pytest.raises(InvalidArgumentError, match=r"inferred element shape: \[1\]"):
        alike.write(1, floats(1, 2))


def test_an_array_of_dynamic_size_grows() -> None:
    array = Array(0, dynamic_size=True, clear_after_read=False)
    array.scatter([2, 0], floats([1, 2], [3, 4]))
    array.write(1, floats(5, 6))
    assert array.size() == 3
    assert array.gather(0, 1, 2).tolist() == [[3, 4], [5, 6], [1, 2]]
    with pytest.raises(InvalidArgumentError, match="array size is: 3"):
        array.read(9)


def test_parts_are_split_and_concatenated() -> None:
    array = Array(2)
    array.split(floats(1, 2, 3), 1, 2)
    assert array.concat() == [[1, 2, 3], [1, 2]]
    text = Array(2, string)
    text.split(np.array([b"a", b"b"], object), 1, 1)
    assert text.concat() == [[b"a", b"b"], [1, 1]]


def test_what_cannot_be_concatenated_or_gathered() -> None:
    with pytest.raises(InvalidArgumentError, match="scalar shape at index 0"):
        written(np.float32(1)).concat()
    with pytest.raises(InvalidArgumentError, match=r"\(excepting dimension 0\) shape: \[2\]"):
        written(floats([1]), floats([1, 2])).concat()
    with pytest.raises(InvalidArgumentError, match="was passed element_shape_except0"):
        written(floats([1])).concat(PartialTensorShape([4]))
    with pytest.raises(InvalidArgumentError, match=r"index 1 has shape: \[2\]"):
        written(floats(1), floats(1, 2)).gather(0, 1)


def test_nothing_needs_a_known_shape() -> None:
    known = PartialTensorShape([2])
    assert Array(0).concat(known) == [[], []]
    assert Array(1).gather(element_shape=known).shape == (0, 2)
    with pytest.raises(UnimplementedError, match="size zero"):
        Array(0).concat()
    with pytest.raises(UnimplementedError, match="size zero"):
        Array(0).gather()


def test_a_closed_array() -> None:
    array = written(floats(1))
    array.close()
    array.close()
    for use in (array.size, array.gradient, lambda: array.read(0)):
        with pytest.raises(InvalidArgumentError, match="has already been closed"):
            use()


# Gradients


def test_gradients_add_up_and_are_zero_where_nothing_was_written() -> None:
    array = written(floats(1, 2), floats(3, 4), dynamic_size=True)
    array.gradient().write(1, floats(1, 1))
    array.gradient().write(1, floats(5, 6))
    gradient = array.gradient()
    assert gradient.size() == 2
    assert gradient.read(1).tolist() == [6, 7]
    assert gradient.read(0).tolist() == [0, 0]
    assert array.gradient("other").read(1).tolist() == [0, 0]
    with pytest.raises(InvalidArgumentError, match="not resizeable"):
        array.write(2, floats(1, 2))


def test_gradients_must_be_of_the_shape_of_what_was_written() -> None:
    gradient = written(floats(1, 2)).gradient()
    with pytest.raises(InvalidArgumentError, match=r"existing shape is \[2\] but the new"):
        gradient.write(0, floats(1))
    with pytest.raises(InvalidArgumentError, match="Wrong input container"):
        gradient.gradient()


def test_gradients_beyond_the_end_are_zeros_of_the_known_shape() -> None:
    gradient = Array(1, element_shape=PartialTensorShape([2])).gradient()
    assert gradient.read(3).tolist() == [0, 0]
    assert gradient.size() == 4


def test_gradients_of_text_do_not_add_up() -> None:
    gradient = Array(1, string).gradient()
    gradient.write(0, np.array(b"a", object))
    with pytest.raises(InvalidArgumentError, match="AddToTensor type not supported: string"):
        gradient.write(0, np.array(b"b", object))


def test_gradients_with_more_dimensions() -> None:
    gradient = written(floats(1, 2)).gradient_with_shape(3)
    gradient.write(0, np.ones((3, 2), np.float32))
    assert gradient.read(0).tolist() == [[1, 1]] * 3


def test_the_gradient_of_a_split_is_concatenated() -> None:
    array = Array(2)
    array.split(floats(1, 2, 3), 1, 2)
    gradient = array.gradient()
    gradient.write(1, floats(5, 6))
    assert gradient.concat() == [[0, 5, 6], [1, 2]]


# Graphs


@pytest.mark.parametrize("sanitize", [False, True])
def test_an_array_ends_with_its_step(sanitize: bool) -> None:
    with Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype=float32, shape=[2], name="x")
        array = raw_ops.TensorArrayV3(size=2, dtype=float32, tensor_array_name="a")
        flow = raw_ops.TensorArrayScatterV3(
            handle=array.handle, indices=ints(1, 0), value=x, flow_in=array.flow
        )
        value = raw_ops.TensorArrayGatherV3(
            handle=array.handle, indices=ints(0, 1), flow_in=flow, dtype=float32
        )
        gradient = raw_ops.TensorArrayGradV3(handle=array.handle, flow_in=flow, source="g")
        write = raw_ops.TensorArrayWriteV3(
            handle=gradient.grad_handle, index=0, value=np.float32(4), flow_in=gradient.flow_out
        )
        read = raw_ops.TensorArrayReadV3(
            handle=gradient.grad_handle, index=0, flow_in=write, dtype=float32
        )
    with Session(graph, sanitize=sanitize) as session:
        for _ in range(2):
            values = session.run([value, read], {"x:0": [1, 2]})
            assert [np.asarray(v).tolist() for v in values] == [[2, 1], 4]
        assert session._devices.client_device.resource_manager.debug_string() == ""


@pytest.mark.filterwarnings("ignore:Op TensorArray:DeprecationWarning")
@pytest.mark.parametrize(("version", "producer"), [("", 15), ("V2", 25)])
def test_older_versions_run_in_graphs_of_their_time(version: str, producer: int) -> None:
    def op(method: str, **inputs: Any) -> Any:
        made: Tensor = getattr(raw_ops, f"TensorArray{method}{version}")(**inputs)
        return made

    graph = Graph()
    graph.graph_def_versions.producer = producer
    with graph.as_default():
        array = op("", size=2, dtype=float32, tensor_array_name="a")
        flow = op(
            "Split", handle=array, value=floats(1, 2, 3), lengths=np.array([1, 2]), flow_in=FLOW
        )
        value, _ = op("Concat", handle=array, flow_in=flow, dtype=float32)
        size = op("Size", handle=array, flow_in=flow)
        gradient = op("Grad", handle=array, flow_in=flow, source="g")
        zeros, _ = op("Concat", handle=gradient, flow_in=FLOW, dtype=float32)
    with Session(graph) as session:
        assert session.run(zeros).tolist() == [0, 0, 0]
        assert session.run(value).tolist() == [1, 2, 3]
        assert session.run(size) == 2
