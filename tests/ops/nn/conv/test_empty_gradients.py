"""Gradients of convolutions without elements: what TensorFlow refuses, and what it computes."""

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError

ATTRS = {"strides": [1] * 5, "padding": "SAME"}


def by_filter(x, sizes, gradient):
    return raw_ops.Conv3DBackpropFilterV2(
        input=np.ones(x, np.float32),
        filter_sizes=np.array(sizes, np.int32),
        out_backprop=np.ones(gradient, np.float32),
        **ATTRS,
    )


def by_input(sizes, filters, gradient):
    return raw_ops.Conv3DBackpropInputV2(
        input_sizes=np.array(sizes, np.int32),
        filter=np.ones(filters, np.float32),
        out_backprop=np.ones(gradient, np.float32),
        **ATTRS,
    )


@pytest.mark.parametrize(
    ("call", "shapes"),
    [
        (by_filter, ((1, 1, 1, 1, 1), (0, 0, 0, 1, 0), (1, 1, 1, 1, 0))),  # TFSA-2021-011
        (by_input, ((0, 0, 0, 0, 0), (0, 0, 0, 1, 0), (0, 0, 0, 0, 0))),
        (by_filter, ((1, 2, 2, 2, 1), (0, 0, 0, 1, 0), (1, 2, 2, 2, 0))),
        (by_input, ((1, 1, 1, 1, 1), (0, 0, 0, 1, 0), (1, 1, 1, 1, 0))),
        (by_input, ((1, 0, 1, 1, 1), (1, 1, 0, 1, 1), (1, 0, 1, 1, 1))),
        (
            by_input,
            ((0, 1, 1, 1, 1), (1, 1, 0, 1, 1), (0, 1, 1, 1, 1)),
        ),  # ends TensorFlow's process
    ],
)
def test_refused(call, shapes):
    with pytest.raises(InvalidArgumentError):
        call(*shapes)


@pytest.mark.parametrize(
    ("call", "shapes", "shape"),
    [
        (by_filter, ((1, 1, 1, 1, 1), (0, 1, 1, 1, 1), (1, 1, 1, 1, 1)), (0, 1, 1, 1, 1)),
        (by_filter, ((1, 1, 1, 1, 1), (1, 1, 1, 1, 0), (1, 1, 1, 1, 0)), (1, 1, 1, 1, 0)),
        (by_filter, ((0, 1, 1, 1, 1), (0, 1, 1, 1, 1), (0, 1, 1, 1, 1)), (0, 1, 1, 1, 1)),
        (by_filter, ((1, 0, 1, 1, 1), (2, 2, 2, 1, 1), (1, 0, 1, 1, 1)), (2, 2, 2, 1, 1)),
        (by_input, ((1, 1, 1, 1, 1), (0, 1, 1, 1, 1), (1, 1, 1, 1, 1)), (1, 1, 1, 1, 1)),
        (by_input, ((0, 1, 1, 1, 1), (2, 2, 2, 1, 1), (0, 1, 1, 1, 1)), (0, 1, 1, 1, 1)),
    ],
)
def test_zeros(call, shapes, shape):
    found = call(*shapes)
    assert found.shape == shape
    assert not found.any()


@pytest.mark.parametrize(
    ("x", "sizes", "gradient"),
    [
        ((1, 2, 2, 2), (0, 1, 1, 1), (1, 2, 2, 1)),
        ((1, 1, 1, 0), (0, 0, 1, 0), (1, 1, 1, 0)),
    ],
)
def test_groups_do_not_matter_to_filters_without_elements(x, sizes, gradient):
    found = raw_ops.Conv2DBackpropFilter(
        input=np.ones(x, np.float32),
        filter_sizes=np.array(sizes, np.int32),
        out_backprop=np.ones(gradient, np.float32),
        strides=[1] * 4,
        padding="SAME",
    )
    assert found.shape == sizes
