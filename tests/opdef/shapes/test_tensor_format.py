import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.opdef.shapes.tensor_format import FilterTensorFormat, TensorFormat


@pytest.mark.parametrize(
    ("text", "letters"),
    [
        ("NHWC", "NHWC"),
        ("NDHWC", "NDHWC"),
        ("NCHW", "NCHW"),
        ("NCDHW", "NCDHW"),
        ("HWNC", "HWNC"),
        ("HWCN", "HWCN"),
        ("NCHW_VECT_C", "NCHWc"),
        ("NHWC_VECT_W", "NHWCw"),
    ],
)
def test_a_layout_says_where_each_dimension_is(text, letters):
    layout = TensorFormat.from_string(text)
    space = 3 if "D" in letters else 2
    for letter in "NCDHW":
        if letter in letters:
            assert layout.index(letter, space) == letters.index(letter)
    assert layout.num_dims(space) == len(letters)
    assert layout.num_spatial_dims(len(letters)) == space
    assert layout.index("0", space) == letters.index("D" if space == 3 else "H")
    if layout.is_vectorised:
        assert layout.inner_index(len(letters)) == len(letters) - 1


@pytest.mark.parametrize(
    ("text", "letters"),
    [
        ("HWIO", "HWIO"),
        ("OIHW", "OIHW"),
        ("OHWI", "OHWI"),
        ("DHWIO", "DHWIO"),
        ("OIDHW", "OIDHW"),
        ("OIHW_VECT_I", "OIHWi"),
    ],
)
def test_a_filter_layout_says_where_each_dimension_is(text, letters):
    layout = FilterTensorFormat.from_string(text)
    space = 3 if "D" in letters else 2
    for letter in "OIDHW":
        if letter in letters:
            assert layout.index(letter, space) == letters.index(letter)
    assert layout.num_dims(space) == len(letters)
    assert layout.num_spatial_dims(len(letters)) == space


def test_steps_are_picked_by_dimension():
    steps = [1, 2, 3, 4]
    assert [TensorFormat.NHWC.pick(steps, x) for x in "NHWC"] == steps
    assert [TensorFormat.NCHW.pick(steps, x) for x in "NCHW"] == steps
    assert [TensorFormat.NCHW_VECT_C.pick(steps, x) for x in "NCHW"] == steps
    assert [TensorFormat.NHWC.pick([1, 2, 3, 4, 5], x) for x in "NDHWC"] == [1, 2, 3, 4, 5]


def test_what_is_no_layout_or_dimension_is_refused():
    with pytest.raises(InvalidArgumentError, match="data format string: NHCW"):
        TensorFormat.from_string("NHCW")
    with pytest.raises(InvalidArgumentError, match="filter format string: IOHW"):
        FilterTensorFormat.from_string("IOHW")
    with pytest.raises(InvalidArgumentError, match="Invalid dimension: D"):
        TensorFormat.NHWC.index("D")
    with pytest.raises(InvalidArgumentError, match="Invalid dimension: 2"):
        TensorFormat.NHWC.index("2")
    with pytest.raises(InvalidArgumentError, match="NHWC has no inner dimension"):
        TensorFormat.NHWC.inner_index(4)
