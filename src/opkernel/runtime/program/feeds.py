"""Values that are fed: checked against the tensor that they stand in for, as TensorFlow does."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.graph import Tensor
from opkernel.messages import short_repr
from opkernel.runtime.step.session_state import LocalSessionState
from opkernel.runtime.step.tensor_handle import TensorHandle
from opkernel.types import DataType, check_handles, holds_handles


def as_feed_dict(feed_dict: Any) -> Mapping[Any, Any]:
    """The feeds of a step, none for None.

    Raises:
        TypeError: they are no mapping, such as the fetches in the place of the feeds.
    """
    if feed_dict is None:
        return {}
    if isinstance(feed_dict, Mapping):
        return feed_dict
    raise TypeError(
        f"feed_dict must be a mapping from tensors to their values, not {short_repr(feed_dict)}: "
        "run(fetches, feed_dict) takes the fetches first"
    )


def as_feed_list(feeds: Any) -> tuple[Any, ...]:
    """The tensors that will be fed, none for None.

    Raises:
        TypeError: they are neither list nor tuple.
    """
    if feeds is None:
        return ()
    if isinstance(feeds, list | tuple):
        return tuple(feeds)
    raise TypeError(
        f"the feeds must be a list or tuple of tensors or names, not {short_repr(feeds)}: the fetches stand "
        "before them, and their values are given when they run"
    )


class Feed:
    """Turns the values fed for one tensor into arrays of its type, and checks their shapes.

    Args:
        tensor: the tensor.
        state: the tensors that the session keeps, which handles stand for.
    """

    __slots__ = ("_dtype", "_shape", "_state", "_tensor", "numpy_dtype")

    def __init__(self, tensor: Tensor, state: LocalSessionState) -> None:
        self._tensor = tensor
        self._state = state
        self._dtype = tensor.dtype.base
        self.numpy_dtype = self._dtype.numpy_dtype
        dims = tensor.shape.as_list() if tensor.shape.rank is not None else None
        self._shape = None if dims is None else tuple(dims)

    def converter(self) -> Callable[[Any], Any]:
        """The function that gives a value as a read-only array, a view where no copy is needed.

        It raises InvalidArgumentError where the type or the shape does not fit. It is a plain
        function for speed: it runs at every step.
        """
        numpy_dtype, accepted = self.numpy_dtype, self._shape
        is_string = self._dtype == DataType.DT_STRING
        is_handle = self._dtype == DataType.DT_RESOURCE

        def convert(value: Any) -> Any:
            nonlocal accepted
            if (
                type(value) is np.ndarray
                and (value.dtype is numpy_dtype or value.dtype == numpy_dtype)
                and (not is_string or holds_bytes(value))
                and (not is_handle or holds_handles(value))
            ):
                array = value.view()
            else:
                array = self._converted(value)
            if array.shape != accepted:
                self._check(array.shape)
                accepted = array.shape  # mostly that of the next step, too
            array.setflags(False)  # type: ignore[call-arg]  # the keyword doubles its time
            return array

        return convert

    def _check(self, shape: tuple[int, ...]) -> None:
        """Raise InvalidArgumentError unless a value of this shape may be fed."""
        declared = self._shape
        if declared is None or (
            len(declared) == len(shape)
            and all(want in (None, got) for want, got in zip(declared, shape, strict=True))
        ):
            return
        raise InvalidArgumentError(
            f"Cannot feed value of shape {shape} for Tensor {self._tensor.name!r}, "
            f"which has shape {str(declared).replace('None', '?')}"
        )

    def _converted(self, value: Any) -> np.ndarray[Any, Any]:
        if isinstance(value, Tensor):
            raise InvalidArgumentError(
                f"The value of a feed cannot be a symbolic tensor; got {value!r} for "
                f"{self._tensor.name!r}. Feed an array, a list or a number"
            )
        if isinstance(value, TensorHandle):
            return self._of_handle(value)
        try:
            if self._dtype == DataType.DT_STRING:
                return string_array(value)
            array = np.asarray(value, dtype=self._accepted(value))
            if self._dtype == DataType.DT_RESOURCE:
                check_handles(array)
        except (ValueError, TypeError, OverflowError) as error:
            raise InvalidArgumentError(
                f"Cannot feed {type(value).__name__} for Tensor {self._tensor.name!r} of type "
                f"{self._dtype.tf_name}: {error}"
            ) from error
        if isinstance(value, int) and array.dtype != object and int(array) != value:
            raise InvalidArgumentError(
                f"Type of feed value {short_repr(value)} with type {type(value)} is not compatible with "
                f"Tensor type {self._dtype.tf_name}"
            )
        return array.view(self.numpy_dtype) if array.dtype.names else array.view()

    def _of_handle(self, handle: TensorHandle) -> np.ndarray[Any, Any]:
        """The tensor that a handle stands for."""
        if handle.dtype != self._dtype:
            raise InvalidArgumentError(
                f"Tensor {self._tensor.name!r} is {self._dtype.tf_name}, but the handle "
                f"{handle.handle!r} stands for a tensor of {handle.dtype.tf_name}"
            )
        array: np.ndarray[Any, Any] = np.asarray(self._state.get_tensor(handle.handle))
        return array.view()

    def _accepted(self, value: Any) -> Any:
        """The NumPy type to convert to: quantised arrays keep the structured type of theirs."""
        if isinstance(value, np.ndarray) and value.dtype == self._dtype.as_numpy_dtype:
            return value.dtype
        return self.numpy_dtype


def converters(
    tensors: Sequence[Tensor], state: LocalSessionState
) -> tuple[Callable[[Any], Any], ...]:
    """The functions that convert fed values; `state` has the tensors of handles."""
    return tuple([Feed(tensor, state).converter() for tensor in tensors])


def holds_bytes(array: Any) -> bool:
    """Whether an object array is a string tensor as kernels know it, without text or numbers."""
    return set(map(type, array.ravel().tolist())) <= {bytes}


def string_array(value: Any) -> np.ndarray[Any, Any]:
    """An object array of bytes; text is encoded as UTF-8.

    Raises:
        TypeError: an element is neither bytes nor text.
    """
    source = np.asarray(value)
    if source.size and source.dtype.kind not in "OSU":
        raise TypeError(f"expected bytes or text, got an array of {source.dtype}")
    if source.dtype.kind in "SU" and not isinstance(value, np.ndarray):
        source = np.asarray(value, dtype=object)
    array = np.empty(source.shape, dtype=object)
    flat = array.reshape(-1)
    for index, item in enumerate(source.reshape(-1)):
        if not isinstance(item, str | bytes):
            raise TypeError(f"expected bytes or text, got {type(item).__name__}")
        flat[index] = item.encode() if isinstance(item, str) else bytes(item)
    return array
