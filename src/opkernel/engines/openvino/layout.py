"""Layouts: OpenVINO computes convolutions and poolings with the channels first."""

from __future__ import annotations

from typing import Any

from opkernel.engines.openvino.tensors import permuted, shape_of
from opkernel.ops.nn.geometry import Windows

__all__ = ["channels_first", "in_layout"]


def channels_first(x: Any, windows: Windows) -> Any:
    """An input in the layout of the windows, turned so that the channels come after the batch."""
    rank = len(shape_of(x))
    return permuted(x, (0, rank - 1, *range(1, rank - 1))) if windows.channels_last else x


def in_layout(x: Any, windows: Windows) -> Any:
    """What has its channels first, turned to the layout of the windows."""
    rank = len(shape_of(x))
    return permuted(x, (0, *range(2, rank), 1)) if windows.channels_last else x
