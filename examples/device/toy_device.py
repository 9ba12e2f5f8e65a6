"""A device type of 100 lines: TOY, whose arrays NumPy cannot look into.

    import toy_device
    with graph.device("/device:TOY:0"): ...

Whatever touches a tensor of the device without asking the device fails at once, so that programs which
run here keep to the contract.
"""

import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from opkernel import DataType, float32, float64, int32, int64
from opkernel.device import Device, DeviceFactory, DeviceOptions, register_device_factory
from opkernel.kernel import register_kernel

NUMERIC = [float32, float64, int32, int64]


class ToyArray:
    """A tensor of the device."""

    __slots__ = ("_values",)
    __array_ufunc__ = None

    def __init__(self, values: Any) -> None:
        self._values = np.array(values)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        return self._values.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return self._values.shape

    def refuse(self, *_: Any, **__: Any) -> NoReturn:
        """Raise: the values are on the device."""
        raise TypeError("a tensor of the device TOY is no array of the host")

    __array__ = __array_function__ = __bool__ = __float__ = __int__ = __index__ = refuse
    __len__ = __iter__ = __getitem__ = __setitem__ = __add__ = __mul__ = __neg__ = refuse


class ToyDevice(Device):
    """A device with memory of its own."""

    def __init__(self, index: int, options: DeviceOptions) -> None:
        super().__init__("TOY", sys.modules[__name__], index, name_prefix=options.name_prefix)

    def to_device(self, array: Any) -> ToyArray:
        """A tensor of the device with the values of an array of the host."""
        return ToyArray(array)

    def to_host(self, tensor: ToyArray) -> np.ndarray[Any, Any]:
        """An array of the host with the values of a tensor of the device."""
        return tensor._values.copy()


class ToyFactory(DeviceFactory):
    """Makes one device where nothing is said of their number."""

    def list_physical_devices(self) -> list[str]:
        """The one that there is."""
        return ["/physical_device:TOY:0"]

    def create_devices(self, options: DeviceOptions) -> Sequence[Device]:
        """New devices, numbered from 0."""
        count = 1 if options.count is None else options.count
        return [ToyDevice(index, options) for index in range(count)]


register_device_factory("TOY", ToyFactory(), priority=10)


def compute(op: str, function: Any, types: Sequence[DataType] = NUMERIC) -> None:
    """Register a kernel that computes on the device."""

    def kernel(*inputs: ToyArray) -> ToyArray:
        return ToyArray(function(*[tensor._values for tensor in inputs]))

    register_kernel(op, device="TOY", types={"T": types}, factory=True)(lambda: kernel)


compute("AddV2", np.add)
compute("Sub", np.subtract)
compute("Mul", np.multiply)
compute("Neg", np.negative)
compute("Relu", lambda x: np.maximum(x, 0))


@register_kernel("MatMul", device="TOY", types={"T": [float32, float64]})
def matmul(a: ToyArray, b: ToyArray, *, transpose_a: bool, transpose_b: bool) -> ToyArray:
    """The product of two matrices."""
    x, y = a._values, b._values
    return ToyArray((x.T if transpose_a else x) @ (y.T if transpose_b else y))


@register_kernel("Identity", device="TOY", kind="view")
def identity(x: ToyArray) -> ToyArray:
    """The tensor itself."""
    return x


@register_kernel("Const", device="TOY", types={"dtype": NUMERIC}, factory=True)
def const(*, value: Any) -> Any:
    """A constant, which comes to the device once."""
    tensor = ToyArray(value)
    return lambda: tensor


@register_kernel("Shape", device="TOY", host_memory=["output"])
def shape(x: ToyArray, *, out_type: Any) -> np.ndarray[Any, Any]:
    """The shape, which is wanted on the host."""
    return np.array(x.shape, out_type.numpy_dtype)
