"""OpenVINO itself. This module alone imports it, at its first use."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from opkernel.errors import UnimplementedError
from opkernel.interrupts import contextmanager

NOT_INSTALLED = (
    "Compiling with OpenVINO needs the library OpenVINO: pip install 'opkernel[openvino]'"
)


_TELEMETRY = "openvino_telemetry"


@functools.cache
def openvino(module: str = "openvino") -> ModuleType:
    """A module of OpenVINO.

    Raises:
        UnimplementedError: OpenVINO is not installed.
    """
    try:
        with _nothing_reported():
            return importlib.import_module(module)
    except ImportError as error:
        raise UnimplementedError(NOT_INSTALLED) from error


@contextmanager
def _nothing_reported() -> Iterator[None]:
    """A scope in which OpenVINO is imported without what tells its makers of it over the network."""
    if _TELEMETRY in sys.modules:
        yield
        return
    missing: Any = None  # for imports, a module that is not there
    try:
        sys.modules[_TELEMETRY] = missing
        yield
    finally:
        del sys.modules[_TELEMETRY]


def opset() -> ModuleType:
    """The functions that make nodes, of the newest set of ops that all supported versions have."""
    return openvino("openvino.opset15")


@functools.cache
def core() -> Any:
    """The one that compiles."""
    return openvino().Core()
