"""Kernels of channels-first images and volumes: those of channels-last ones, between transposes.

TensorFlow computes these layouts by oneDNN, which its wheels use for float and bfloat16. Its other CPU kernels refuse
them. The transposes here are views: between two such kernels nothing is copied.

Source: TensorFlow core/common_runtime/mkl_layout_pass.cc, core/common_runtime/eager/mkl_eager_op_rewrite.cc.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from opkernel.kernel.function_kernel import keywords_of
from opkernel.opdef import global_op_registry
from opkernel.opdef.shapes.channel_order import (
    CHANNELS_FIRST,
    ChannelOrder,
    channels_last_attrs,
)
from opkernel.types import DataType

ONEDNN_TYPES = (DataType.DT_FLOAT, DataType.DT_BFLOAT16)
"""The types that TensorFlow computes by oneDNN on every CPU."""

_Make = Callable[..., Callable[..., Any]]


def no_explicit_padding(attrs: Mapping[str, Any]) -> bool:
    """Whether the padding is left to the op."""
    return str(attrs["padding"]) != "EXPLICIT"


def pools_space_only(attrs: Mapping[str, Any]) -> bool:
    """Whether windows are over space only, and padded as the op decides."""
    of_others = [*attrs["ksize"][:2], *attrs["strides"][:2]]
    return set(of_others) == {1} and no_explicit_padding(attrs)


def also_channels_first(
    op: str, where: Callable[[Mapping[str, Any]], bool] = lambda attrs: True
) -> Callable[[_Make], _Make]:
    """Have a factory of kernels take images with channels first, in the types of oneDNN.

    The trait `images` of the op says which inputs and outputs are images.

    Args:
        op: the op.
        where: whether oneDNN computes nodes with these attrs. The factory is asked for all others, and refuses them.
    """

    def decorate(make: _Make) -> _Make:
        keywords = keywords_of(make)

        @wraps(make)
        def made(*bound: Any, **attrs: Any) -> Callable[..., Any]:
            own = {name: attrs[name] for name in keywords}
            order = CHANNELS_FIRST.get(attrs["data_format"])
            if order is None or attrs["T"] not in ONEDNN_TYPES or not where(attrs):
                return make(*bound, **own)
            turned = channels_last_attrs(own | {"data_format": attrs["data_format"]})
            kernel = make(*bound, **{name: turned[name] for name in keywords})
            return _between_transposes(kernel, order, global_op_registry().traits(op).images)

        known = {*keywords, "T", "data_format"}
        made.kernel_keywords = tuple(sorted(known))  # type: ignore[attr-defined]  # for keywords_of
        return made

    return decorate


def _between_transposes(
    kernel: Callable[..., Any], order: ChannelOrder, images: str
) -> Callable[..., Any]:
    """The kernel for channels first, made of that for channels last.

    An input of another rank is not turned; the kernel refuses it.
    """
    inputs, output = images.split(":")
    rank = len(order.to_last)

    def turned(value: Any, role: str) -> Any:
        if isinstance(value, list):
            return [turned(one, role) for one in value]
        if role in "i?" and value.ndim == rank:
            return value.transpose(order.to_last)
        if role == "s" and value.shape == (rank,):
            return value[list(order.to_last)]
        return value

    def computed(*values: Any) -> Any:
        roles = inputs.ljust(len(values), inputs[-1])
        result = kernel(*map(turned, values, roles))
        return result.transpose(order.to_first) if output[0] == "i" else result

    return computed
