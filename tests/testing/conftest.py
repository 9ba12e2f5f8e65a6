"""Registries of a test's own, so that wrong kernels are known to it alone."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.runtime.placement.conftest import toy

from opkernel.kernel import KernelRegistry, register_kernel
from opkernel.opdef import OpRegistry, register_op, unchanged_shape

__all__ = ["Ops", "ops", "toy"]


class Ops:
    """Ops and kernels; `options` passes both registries on."""

    def __init__(self) -> None:
        self.options: dict[str, Any] = {"registry": KernelRegistry(), "op_registry": OpRegistry()}

    def op(self, name: str = "Copy", **declared: Any) -> None:
        """Declare an op; by default one that gives an output like its input."""
        wanted: dict[str, Any] = {
            "inputs": ["x: T"],
            "outputs": ["y: T"],
            "attrs": ["T: {float, int32}"],
            "shape_fn": unchanged_shape,
        }
        register_op(name, **(wanted | declared), registry=self.options["op_registry"])

    def kernel(self, name: str = "Copy", **declared: Any) -> Callable[[Any], Any]:
        """Register the decorated kernel for the CPU."""
        return register_kernel(name, device="CPU", **declared, **self.options)


@pytest.fixture
def ops() -> Ops:
    return Ops()
