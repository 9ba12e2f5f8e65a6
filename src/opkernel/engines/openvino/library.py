"""OpenVINO itself. This module alone imports it, at its first use."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from opkernel.interrupts import contextmanager
from opkernel.libraries import library

NEED = "Compiling with OpenVINO"
"""The subject of the error where the library is missing."""

_TELEMETRY = "openvino_telemetry"


_one_at_a_time = threading.RLock()
"""Threads that compile import OpenVINO one after the other."""


@functools.cache
def openvino(module: str = "openvino") -> ModuleType:
    """A module of OpenVINO.

    Raises:
        UnimplementedError: OpenVINO is not installed.
    """
    with _one_at_a_time, _nothing_reported():
        return library(module, NEED)


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


def core() -> Any:
    """The one that compiles."""
    with _one_at_a_time:
        return _core()


@functools.cache
def _core() -> Any:
    return openvino().Core()
