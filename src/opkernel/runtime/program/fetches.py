"""The fetches that `Session.run` takes, and the structure of its answer.

A fetch is a Tensor, an Operation (run for its effect; the answer is None), or the name of either;
IndexedSlices, which are answered as IndexedSlicesValue; lists, tuples, named tuples and dicts of
fetches, nested as one likes, are answered in the same form. Source: TensorFlow python/client/session.py.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opkernel.errors import InvalidArgumentError
from opkernel.graph import Graph, Operation, Tensor
from opkernel.runtime.plan.references import fetched_value
from opkernel.runtime.program.results import Result, result_of
from opkernel.runtime.step.session_state import LocalSessionState
from opkernel.runtime.step.tensor_handle import SESSION_HANDLE_OPS, TensorHandle

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
            return self._plan_sequence(fetch)
        fetched_parts = getattr(fetch, "_fetched_parts", None)
        if fetched_parts is not None:
            return self._plan_parts(fetched_parts())
        element = self._graph.as_graph_element(fetch)
        if isinstance(element, Operation):
            self.targets.append(element)
            return lambda values: None
        position = self._position(element)
        if position == 0:
            return _first
        return lambda values: values[position]

    def _plan_sequence(self, fetches: Sequence[Any]) -> Build:
        parts = [self._plan(fetch) for fetch in fetches]
        if isinstance(fetches, list):
            return lambda values: [part(values) for part in parts]
        form: Any = type(fetches)
        if hasattr(form, "_fields"):
            return lambda values: form(*[part(values) for part in parts])
        return lambda values: form(part(values) for part in parts)

    def _plan_parts(self, tensors: Sequence[Tensor | None]) -> Build:
        """As for a sequence; a part that is not there is answered by None."""
        parts = [None if tensor is None else self._plan(tensor) for tensor in tensors]
        form: Any = type(tensors)
        return lambda values: form(*[None if part is None else part(values) for part in parts])

    def _result(self, tensor: Tensor) -> Result:
        """The function that reads the value of a tensor from a list of values, for the caller."""
        finish = result_of(tensor.dtype.base)
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


def _first(values: Sequence[Any]) -> Any:
    return values[0]


def _like_mapping(form: type, keys: Sequence[Any], values: Sequence[Any]) -> Any:
    pairs = dict(zip(keys, values, strict=True))
    return pairs if form is dict else form(pairs)
