"""OpenVINO itself. This module alone imports it, at its first use."""

from __future__ import annotations

import functools
import importlib
from types import ModuleType
from typing import Any

from opkernel.errors import UnimplementedError

__all__ = ["NOT_INSTALLED", "core", "openvino", "opset"]

NOT_INSTALLED = (
    "Compiling with OpenVINO needs the library OpenVINO: pip install 'opkernel[openvino]'"
)


@functools.cache
def openvino(module: str = "openvino") -> ModuleType:
    """A module of OpenVINO.

    Raises:
        UnimplementedError: OpenVINO is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UnimplementedError(NOT_INSTALLED) from error


def opset() -> ModuleType:
    """The functions that make nodes, of the newest set of ops that all supported versions have."""
    return openvino("openvino.opset15")


@functools.cache
def core() -> Any:
    """The one that compiles."""
    return openvino().Core()
