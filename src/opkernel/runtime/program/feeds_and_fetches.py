"""What a step is fed, and what it gives: feeds are checked as TensorFlow does, fetches answered in the form that was asked for.

A fetch is a Tensor, an Operation (run for its effect; the answer is None), or the name of either;
IndexedSlices, which are answered as IndexedSlicesValue; lists, tuples, named tuples and dicts of
fetches, nested as one likes, are answered in the same form.

A result is the caller's own array, to which nothing else refers. A kernel may hand out an input or a view of it, or
an array that a variable, a constant, a queue or the kernel itself holds. CPython's reference counts tell. If
something else refers to a result, or to the array whose memory it shows, even by a weak reference, the caller gets
a copy. Other results become the caller's as they are.

Source: TensorFlow python/client/session.py.
"""

from collections.abc import Callable, Mapping, Sequence
from sys import getrefcount
from typing import Any
from weakref import getweakrefcount, getweakrefs

import numpy as np

from opkernel.device.budget import current_budget
from opkernel.errors import InvalidArgumentError
from opkernel.graph import Graph, Operation, Tensor
from opkernel.kernel import is_recycled
from opkernel.messages import short_repr
from opkernel.runtime.plan.keys import fetched_value
from opkernel.runtime.program.session_state import (
    SESSION_HANDLE_OPS,
    LocalSessionState,
    TensorHandle,
)
from opkernel.types import Array, DataType, check_handles, detached, holds_handles


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
        checks_shapes: whether values must have the shape of the tensor.
    """

    __slots__ = ("_dtype", "_shape", "_state", "_tensor", "numpy_dtype")

    def __init__(
        self, tensor: Tensor, state: LocalSessionState, *, checks_shapes: bool = True
    ) -> None:
        self._tensor = tensor
        self._state = state
        self._dtype = tensor.dtype.base
        self.numpy_dtype = self._dtype.numpy_dtype
        is_known = checks_shapes and tensor.shape.rank is not None
        self._shape = tuple(tensor.shape.as_list()) if is_known else None

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

    def _converted(self, value: Any) -> Array:
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

    def _of_handle(self, handle: TensorHandle) -> Array:
        """The tensor that a handle stands for."""
        if handle.dtype != self._dtype:
            raise InvalidArgumentError(
                f"Tensor {self._tensor.name!r} is {self._dtype.tf_name}, but the handle "
                f"{handle.handle!r} stands for a tensor of {handle.dtype.tf_name}"
            )
        array: Array = np.asarray(self._state.get_tensor(handle.handle))
        return array.view()

    def _accepted(self, value: Any) -> Any:
        """The NumPy type to convert to: quantised arrays keep the structured type of theirs."""
        if isinstance(value, np.ndarray) and value.dtype == self._dtype.as_numpy_dtype:
            return value.dtype
        return self.numpy_dtype


def converters(
    tensors: Sequence[Tensor], state: LocalSessionState, *, checks_shapes: bool = True
) -> tuple[Callable[[Any], Any], ...]:
    """The functions that convert fed values, as `Feed.converter` gives them; arguments as for `Feed`."""
    feeds = [Feed(tensor, state, checks_shapes=checks_shapes) for tensor in tensors]
    return tuple([feed.converter() for feed in feeds])


def holds_bytes(array: Any) -> bool:
    """Whether an object array is a string tensor as kernels know it, without text or numbers."""
    return set(map(type, array.ravel().tolist())) <= {bytes}


def string_array(value: Any) -> Array:
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


Result = Callable[..., Any]
"""Takes values, and the index of one unless it is the first; that value as the caller gets it."""


def owned(values: Sequence[Any], index: int = 0) -> Any:
    """A value of a sequence as an array that nobody else has; of rank 0, a scalar.

    The sequence must have the only reference to what is not to be copied.
    """
    value = values[index]
    count = getrefcount(value)
    if count <= _OURS and value.base is None and value.ndim and value.flags.writeable:
        if getweakrefcount(value) and _is_kept_weakly(value):
            return value.copy()
        return value  # most are like this
    if value.ndim == 0:
        return value[()]
    return value if _is_own(value, count) else _copied(value)


def _copied(value: Any) -> Any:
    """A copy of a value; counted, where memory is limited."""
    budget = current_budget()
    if budget is None:
        return value.copy()
    budget.check_memory(value.nbytes, f"a copy of what was fetched: {value.dtype}{[*value.shape]}")
    copied = value.copy()
    budget.hold(copied)
    return copied


def _is_own(array: Any, count: int) -> bool:
    """Whether an array with so many references may be written to and nobody else sees its memory."""
    if not array.flags.writeable or not _is_alone(array, count):
        return False
    owner = array.base
    if owner is None:
        return True
    count = getrefcount(owner)
    return type(owner) is np.ndarray and owner.base is None and _is_alone(owner, count)


def _is_alone(array: Any, count: int) -> bool:
    """Whether nothing else refers to an array, except for `recycled`, which reuses the memory of dead arrays."""
    is_alone = count <= _OURS or (count == _OURS + 1 and is_recycled(array))
    return is_alone and not _is_kept_weakly(array)


def _is_kept_weakly(array: Any) -> bool:
    """Whether a possible reader has a weak reference to an array; the counters of memory do not read it."""
    if not getweakrefcount(array):
        return False
    return not all(getattr(one, "only_counts", False) for one in getweakrefs(array))


def _references(values: Sequence[Any], index: int) -> int:
    value = values[index]
    return getrefcount(value)


_OURS = _references([np.empty(1)], 0)
"""References to an array that only a sequence, or a view, and a local of `owned` refer to."""


def owned_of(dtype: DataType) -> Result:
    """`owned` for tensors of a type; quantised ones become arrays of NumPy's structured type."""
    if not dtype.is_quantized:
        return owned
    structured = dtype.as_numpy_dtype
    return lambda values, index=0: np.asarray(owned(values, index)).view(structured)[()]


def result_of(dtype: DataType) -> Result:
    """`owned_of`, for a step's results: variants, too, have tensors that no caller can write to."""
    return _owned_variants if dtype == DataType.DT_VARIANT else owned_of(dtype)


def _owned_variants(values: Sequence[Any], index: int = 0) -> Any:
    value = values[index]
    return detached(value)[()] if value.ndim == 0 else detached(value)


Build = Callable[[Sequence[Any]], Any]


class FetchPlan:
    """The tensors and operations that fetches ask for, each once, and how to build the answer.

    Args:
        graph: where they are.
        fetches: what is asked for.
        state: the tensors that the session keeps, which fetched handles stand for.

    Attributes:
        tensors: the tensors to compute, without duplicates.
        targets: the operations to run.
    """

    def __init__(self, graph: Graph, fetches: Any, state: LocalSessionState) -> None:
        self._graph = graph
        self._state = state
        self._positions: dict[tuple[str, int], int] = {}
        self.tensors: list[Tensor] = []
        self.targets: list[Operation] = []
        self._build: Build = self._plan(fetches)

    @property
    def kept(self) -> list[str]:
        """The nodes whose fetched handles stand for tensors that the session is to keep."""
        return [tensor.op.name for tensor in self.tensors if tensor.op.type in SESSION_HANDLE_OPS]

    def answer(self) -> Build:
        """The function that turns values of `tensors` into the answer to the fetches."""
        if self._build is _first:
            return self._result(self.tensors[0])
        finishes = list(enumerate(map(self._result, self.tensors)))
        build = self._build
        return lambda values: build([finish(values, index) for index, finish in finishes])

    def _plan(self, fetch: Any) -> Build:
        """How to build the answer for one fetch from the values of `tensors`."""
        if fetch is None:
            raise InvalidArgumentError(
                "Fetch argument None has invalid type NoneType, must be a Tensor, an Operation, or the "
                "name of one"
            )
        if isinstance(fetch, Mapping):
            keys, form = list(fetch), type(fetch)
            parts = [self._plan(fetch[key]) for key in keys]
            return lambda values: _like_mapping(form, keys, [part(values) for part in parts])
        if isinstance(fetch, list | tuple):
            return self._plan_sequence(fetch, [*map(self._plan, fetch)])
        fetched_parts = getattr(fetch, "_fetched_parts", None)
        if fetched_parts is not None:
            found = fetched_parts()  # of which some may be lacking
            return self._plan_sequence(
                found, [_nothing if one is None else self._plan(one) for one in found]
            )
        element = self._graph.as_graph_element(fetch)
        if isinstance(element, Operation):
            self.targets.append(element)
            return _nothing
        position = self._position(element)
        if position == 0:
            return _first
        return lambda values: values[position]

    def _plan_sequence(self, fetches: Sequence[Any], parts: Sequence[Build]) -> Build:
        """How to build the answer in the form of a sequence of fetches."""
        if isinstance(fetches, list):
            return lambda values: [part(values) for part in parts]
        form: Any = type(fetches)
        if hasattr(form, "_fields"):
            return lambda values: form(*[part(values) for part in parts])
        return lambda values: form(part(values) for part in parts)

    def _result(self, tensor: Tensor) -> Result:
        """The function that reads the value of a tensor from a list of values, for the caller."""
        # As TensorFlow's sessions, plain integers for quantised types; eager results show their type.
        finish = owned if tensor.dtype.base.is_quantized else result_of(tensor.dtype.base)
        if tensor.op.type in SESSION_HANDLE_OPS:
            dtype, state = tensor.op.inputs[0].dtype.base, self._state
            return lambda values, i=0: TensorHandle(_handle_text(finish(values, i)), dtype, state)
        if not tensor.dtype.is_ref:
            return finish
        return lambda values, i=0: finish([fetched_value(values[i], tensor.name)], 0)

    def _position(self, tensor: Tensor) -> int:
        position = self._positions.setdefault(
            (tensor.op.name, tensor.value_index), len(self.tensors)
        )
        if position == len(self.tensors):
            self.tensors.append(tensor)
        return position


def _handle_text(value: Any) -> str:
    """The text of a handle, which is a string or the name of a resource."""
    return value.decode() if isinstance(value, bytes) else str(value.name)


def _nothing(values: Sequence[Any]) -> None:
    """The answer for an operation."""


def _first(values: Sequence[Any]) -> Any:
    return values[0]


def _like_mapping(form: type, keys: Sequence[Any], values: Sequence[Any]) -> Any:
    pairs = dict(zip(keys, values, strict=True))
    return pairs if form is dict else form(pairs)
