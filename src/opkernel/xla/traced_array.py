"""TracedArray: a value of a program that looks like an array of NumPy, one that can be written to.

Code that is written for NumPy and changes arrays in place, such as the steps of optimisers, runs on it as it is: NumPy
hands its functions over by name, and an assignment puts another value in the place of the old one.

Source: NumPy's NEP 13 and NEP 18.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from opkernel.errors import InvalidArgumentError
from opkernel.xla.jax_numpy import jnp


def value_of(array: Any) -> Any:
    """The value of the program that stands behind an array, which may be a sequence of them."""
    if isinstance(array, TracedArray):
        return array.value
    if isinstance(array, tuple | list):
        return type(array)(map(value_of, array))
    return array


def traced(make: Callable[..., Callable[..., Any]]) -> Callable[..., Callable[..., Any]]:
    """The maker of kernels that run kernels of the CPU on values of the program; constants stay arrays of NumPy."""

    @functools.wraps(make)
    def make_traced(**attrs: Any) -> Callable[..., Any]:
        kernel = make(**attrs)

        def run(*inputs: Any) -> Any:
            arrays = (one if isinstance(one, np.ndarray) else TracedArray(one) for one in inputs)
            return value_of(kernel(*arrays))

        return run

    return make_traced


class TracedArray(NDArrayOperatorsMixin):
    """An array whose elements are known when the program runs.

    Attributes:
        value: What the array holds now.
    """

    def __init__(self, value: Any) -> None:
        self.value = value

    @property
    def dtype(self) -> Any:
        """The type of the elements."""
        return self.value.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return tuple(self.value.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(self.value.size)

    @property
    def real(self) -> TracedArray:
        """The real parts."""
        return TracedArray(self.value.real)

    def astype(self, dtype: Any, **_: Any) -> TracedArray:
        """The elements in another type."""
        return TracedArray(self.value.astype(dtype))

    def copy(self) -> TracedArray:
        """Another array with the same elements."""
        return TracedArray(self.value)

    def reshape(self, *shape: Any) -> TracedArray:
        """The elements in another shape."""
        return TracedArray(self.value.reshape(*shape))

    def transpose(self, *axes: Any) -> TracedArray:
        """The array with its dimensions in another order."""
        return TracedArray(self.value.transpose(*axes))

    def __len__(self) -> int:
        return len(self.value)

    def __bool__(self) -> bool:
        raise InvalidArgumentError("A value is asked for that is known only when the program runs")

    def __getitem__(self, key: Any) -> TracedArray:
        return TracedArray(self.value[value_of(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.value = self.value.at[value_of(key)].set(value_of(value))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__":
            return NotImplemented
        (target,) = options.pop("out", (None,))
        return self._called(ufunc.__name__, inputs, options, target)

    def __array_function__(
        self, function: Any, types: Any, args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        return self._called(function.__name__, args, options, options.pop("out", None))

    @staticmethod
    def _called(name: str, inputs: Any, options: dict[str, Any], target: Any) -> Any:
        given = {key: value_of(value) for key, value in options.items()}
        where = given.pop("where", None)
        found = getattr(jnp(), name)(*map(value_of, inputs), **given)
        if target is None:
            return TracedArray(found)
        found = found.astype(target.dtype)
        target.value = found if where is None else jnp().where(where, found, target.value)
        return target
