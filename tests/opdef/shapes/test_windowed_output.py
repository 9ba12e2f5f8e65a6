import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.opdef.common_shapes.windows import (
    Padding,
    get_windowed_output_size,
    get_windowed_output_size_verbose,
)


@pytest.mark.parametrize(
    ("input_size", "filter_size", "dilation", "stride", "padding", "expected"),
    [
        (5, 1, 1, 1, Padding.SAME, (5, 0)),
        (5, 1, 2, 1, Padding.VALID, (5, 0)),
        (5, 3, 1, 1, Padding.SAME, (5, 1)),
        (5, 3, 1, 2, Padding.SAME, (3, 1)),
        (6, 3, 1, 2, Padding.SAME, (3, 0)),
        (5, 3, 2, 1, Padding.SAME, (5, 2)),
        (5, 3, 1, 2, Padding.VALID, (2, 0)),
        (5, 3, 2, 1, Padding.VALID, (1, 0)),
        (2, 3, 1, 1, Padding.VALID, (0, 0)),
        (2, 4, 1, 3, Padding.VALID, (0, 0)),
        (0, 3, 1, 1, Padding.SAME, (0, 1)),
    ],
)
def test_windows_and_padding(input_size, filter_size, dilation, stride, padding, expected):
    found = get_windowed_output_size(input_size, filter_size, dilation, stride, padding)
    assert found == expected


def test_all_padding_is_told():
    assert get_windowed_output_size_verbose(6, 3, 1, 2, Padding.SAME) == (3, 0, 1)
    assert get_windowed_output_size_verbose(6, 3, 1, 2, Padding.VALID, 5, 5) == (2, 0, 0)
    assert get_windowed_output_size_verbose(6, 3, 1, 2, Padding.EXPLICIT, 1, 2) == (4, 1, 2)


@given(
    st.integers(0, 40),
    st.integers(1, 7),
    st.integers(1, 4),
    st.integers(1, 5),
    st.integers(0, 3),
    st.integers(0, 3),
)
def test_every_window_and_no_more_fits_into_the_padded_input(
    input_size, filter_size, dilation, stride, before, after
):
    reach = (filter_size - 1) * dilation
    starts = range(0, max(0, input_size + before + after - reach), stride)
    if input_size + before + after + stride > reach:
        found = get_windowed_output_size_verbose(
            input_size, filter_size, dilation, stride, Padding.EXPLICIT, before, after
        )
        assert found == (len(starts), before, after)
    same = get_windowed_output_size_verbose(input_size, filter_size, dilation, stride, Padding.SAME)
    assert same.size == -(-input_size // stride)
    assert 0 <= same.padding_after - same.padding_before <= 1


@pytest.mark.parametrize(
    ("args", "facts"),
    [
        ((5, 1, 1, 0, Padding.SAME), "Stride must be > 0, but got 0"),
        ((5, 1, 1, -1, Padding.VALID), "Stride must be > 0, but got -1"),
        ((5, 1, 0, 1, Padding.VALID), "Dilation rate must be >= 1, but got 0"),
        ((1, 5, 1, 2, Padding.VALID), "negative: -1.*input_size: 1.*size: 5, stride: 2"),
    ],
)
def test_windows_that_cannot_be_are_refused(args, facts):
    with pytest.raises(InvalidArgumentError, match=facts):
        get_windowed_output_size(*args)


def test_explicit_padding_needs_the_paddings():
    with pytest.raises(InternalError, match="EXPLICIT"):
        get_windowed_output_size(5, 1, 1, 1, Padding.EXPLICIT)
