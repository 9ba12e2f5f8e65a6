"""check_device passes the CPU and the example, and finds each way to break the contract."""

from typing import Any

import numpy as np
import pytest

from opkernel.device.device_factory import DeviceFactory, register_device_factory
from opkernel.errors import NotFoundError
from opkernel.testing import check_device


def test_the_cpu_and_the_example_pass(toy):
    check_device("CPU")
    check_device("TOY")


def test_a_type_without_a_factory_is_not_found():
    with pytest.raises(NotFoundError, match="No device factory is registered for 'ABSENT'"):
        check_device("ABSENT")


def broken(toy, **methods):
    """The example with other methods."""
    device = type("Broken", (toy.ToyDevice,), methods)

    class Factory(DeviceFactory):
        def create_devices(self, options):
            return [
                device(n, options) for n in range(1 if options.count is None else options.count)
            ]

    register_device_factory("TOY", Factory(), priority=20)


BREAKS: dict[str, dict[str, Any]] = {
    "incarnation": {"incarnation": 5},
    "their names": {"name": property(lambda self: "TOY:0", lambda self, name: None)},
    "says that its type": {"device_type": property(lambda self: "TOYS", lambda self, name: None)},
    "another shape": {"to_device": lambda self, array: self.made(np.atleast_1d(array))},
    "comes back as another": {"to_host": lambda self, tensor: tensor._values + 0 * 1 == 0},
    "comes back as <class 'list'>": {"to_host": lambda self, tensor: [tensor]},
}


@pytest.mark.parametrize("what", BREAKS)
def test_what_is_broken_is_found(toy, what):
    broken(toy, made=staticmethod(toy.ToyArray), **BREAKS[what])
    with pytest.raises(AssertionError, match=what):
        check_device("TOY")


def test_a_device_that_keeps_arrays_of_the_host_is_found(toy):
    def to_device(self, array):
        tensor = toy.ToyArray(0)
        tensor._values = array
        return tensor

    broken(toy, to_device=to_device)
    with pytest.raises(AssertionError, match="comes back as another"):
        check_device("TOY")


def test_a_kernel_that_computes_something_else_is_found(toy):
    toy.compute("Abs", np.negative)
    with pytest.raises(AssertionError, match="Abs on TOY gives"):
        check_device("TOY")
