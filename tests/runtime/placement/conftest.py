"""The device type of examples/device, for as long as a test runs."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from opkernel.device.device_factory import device_types, unregister_device_factory
from opkernel.kernel import global_kernel_registry

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def toy() -> Iterator[ModuleType]:
    """The module; its device type and kernels are gone afterwards."""
    registry = global_kernel_registry()
    added, register = [], registry.register

    def note(registration):
        if registration.kernel_def.device_type == "TOY":  # others were loaded meanwhile
            added.append(registration)
        register(registration)

    path = ROOT / "examples/device/toy_device.py"
    spec = importlib.util.spec_from_file_location("toy_device", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "register", note)
        patch.setitem(sys.modules, "toy_device", module)
        spec.loader.exec_module(module)
        yield module
    while "TOY" in device_types():  # a test may have put another in its place
        unregister_device_factory("TOY")
    for registration in added:
        registry.unregister(registration)
