"""The ops that are linear in their input and in a filter, which passes fold constants into."""

from typing import NamedTuple


class Filter(NamedTuple):
    """The second input of an op.

    Attributes:
        rank: how many dimensions it has.
        channels: those that are the channels of the output; the one before the last is the input's.
    """

    rank: int
    channels: tuple[int, ...]


FILTERS = {
    "Conv2D": Filter(4, (3,)),
    "Conv3D": Filter(5, (4,)),
    "DepthwiseConv2dNative": Filter(4, (2, 3)),
    "MatMul": Filter(2, (1,)),
}
"""The filters of the ops."""
