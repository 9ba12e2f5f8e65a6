import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import opkernel
from opkernel import int32, int64, kernel_function, raw_ops
from opkernel.errors import InvalidArgumentError

TENSOR = np.arange(24).reshape(2, 3, 4)


def strided(tensor, *index):
    """`tensor[index]` through StridedSlice, as TensorFlow's Python writes such an index."""
    return raw_ops.StridedSlice(input=tensor, **spec(index))


def spec(index):
    bounds, masks = [], dict.fromkeys(("begin", "end", "ellipsis", "new_axis", "shrink_axis"), 0)
    for i, entry in enumerate(index):
        bit = 1 << i
        begin, end, stride = 0, 0, 1
        if entry is Ellipsis:
            masks["ellipsis"] |= bit
        elif entry is None:
            masks["new_axis"] |= bit
        elif isinstance(entry, int):
            begin, end = entry, entry + 1
            masks["shrink_axis"] |= bit
        else:
            masks["begin"] |= bit * (entry.start is None)
            masks["end"] |= bit * (entry.stop is None)
            begin, end, stride = entry.start or 0, entry.stop or 0, entry.step or 1
        bounds.append((begin, end, stride))
    columns = np.array(bounds, np.int32).reshape(-1, 3).T
    names = dict(zip(("begin", "end", "strides"), columns, strict=True))
    return names | {f"{name}_mask": mask for name, mask in masks.items()}


@given(npst.basic_indices((2, 3, 4), allow_newaxis=True, max_dims=5))
def test_every_index_of_numpy_means_the_same(index):
    entries = index if isinstance(index, tuple) else (index,)
    result = strided(TENSOR, *entries)
    np.testing.assert_array_equal(result, TENSOR[index])
    assert np.shape(result) == np.shape(TENSOR[index])


@given(st.integers(-7, 7), st.integers(-7, 7), st.sampled_from([-3, -2, -1, 1, 2, 3]))
def test_ends_out_of_bounds_are_cut(begin, end, stride):
    vector = np.arange(5)
    result = strided(vector, slice(begin, end, stride))
    np.testing.assert_array_equal(result, vector[begin:end:stride])


def test_a_range_that_an_end_below_the_first_leaves_empty():
    assert strided(np.arange(3), slice(-10, -10, -1)).shape == (0,)


def test_a_slice_of_strings_is_an_array_whatever_its_rank():
    words = np.array([b"a", b"b\0"], object)
    assert strided(words, slice(1, None)).tolist() == [b"b\0"]
    assert strided(words, -1) == b"b\0"


def test_a_session_takes_the_slice_of_each_shape_and_of_bounds_as_they_are_at_each_step():
    graph = opkernel.Graph()
    x, begin, end, strides = (
        graph.create_op("Placeholder", [], name=name, attrs={"dtype": dtype}).outputs[0]
        for name, dtype in zip("xbes", [opkernel.float32, *[opkernel.int32] * 3], strict=True)
    )
    graph.create_op("StridedSlice", [x, begin, end, strides], name="y")
    buffer = np.array([0], np.int32)
    locked = buffer.view()
    locked.setflags(write=False)
    feeds = {"e:0": np.array([9], np.int32), "s:0": np.array([1], np.int32), "b:0": locked}
    with opkernel.Session(graph) as session:
        for size, start in [(4, 0), (4, 0), (6, 0), (4, 2), (4, 3)]:
            buffer[0] = start
            vector = np.arange(size, dtype=np.float32)
            found = session.run("y:0", feeds | {"x:0": vector})
            np.testing.assert_array_equal(found, vector[start:])


def test_it_is_a_view():
    attrs = spec((..., slice(None, None, -1)))
    bounds = [attrs.pop(name) for name in ("begin", "end", "strides")]
    kernel = kernel_function("StridedSlice", T=int64, Index=int32, **attrs)
    assert np.shares_memory(kernel(TENSOR, *bounds), TENSOR)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ((2,), "slice index 2 of dimension 0 out of bounds"),
        ((slice(None), -4), "slice index -1 of dimension 1 out of bounds"),
        ((0, 0, 0, 0), "Index out of range using input dim 3; input has only 3 dims"),
        ((..., slice(None), ...), "Multiple ellipses in slice spec not allowed"),
    ],
)
def test_it_refuses(index, message):
    with pytest.raises(InvalidArgumentError, match=message):
        strided(TENSOR, *index)


def test_it_refuses_a_stride_of_0_and_a_negative_one_for_an_index():
    arguments = {"input": TENSOR, "begin": [0], "end": [1]}
    with pytest.raises(InvalidArgumentError, match=r"strides\[0\] must be non-zero"):
        raw_ops.StridedSlice(**arguments, strides=[0])
    with pytest.raises(InvalidArgumentError, match="only stride 1 allowed on non-range indexing"):
        raw_ops.StridedSlice(**arguments, strides=[-1], shrink_axis_mask=1)


def test_it_refuses_scalars_and_vectors_of_different_length():
    with pytest.raises(InvalidArgumentError, match="Attempting to slice scalar input"):
        strided(np.float32(1), 0)
    with pytest.raises(InvalidArgumentError, match=r"got shapes \[1\], \[2\], and \[1\] instead"):
        raw_ops.StridedSlice(input=TENSOR, begin=[0], end=[1, 1], strides=[1])


def test_the_gradient_puts_back_what_was_taken():
    index = (slice(None, None, 2), None, -1)
    taken = strided(TENSOR, *index)
    grad = raw_ops.StridedSliceGrad(shape=[2, 3, 4], dy=taken, **spec(index))
    expected = np.zeros_like(TENSOR)
    expected[0, 2] = TENSOR[0, 2]
    np.testing.assert_array_equal(grad, expected)
    with pytest.raises(InvalidArgumentError, match=r"shape of dy was \[1\] instead of \[1,1,4\]"):
        raw_ops.StridedSliceGrad(shape=[2, 3, 4], dy=np.zeros(1), **spec(index))


def test_an_update_is_broadcast_and_leaves_its_input_alone():
    before = TENSOR.copy()
    result = raw_ops.TensorStridedSliceUpdate(
        input=TENSOR, value=np.array([7, 8, 9]), **spec((1, ..., 0))
    )
    assert result[1, :, 0].tolist() == [7, 8, 9]
    np.testing.assert_array_equal(TENSOR, before)
    with pytest.raises(InvalidArgumentError, match=r"input shape \[2\] into final shape \[3\]"):
        raw_ops.TensorStridedSliceUpdate(input=TENSOR, value=np.array([7, 8]), **spec((1, ..., 0)))
