"""Tensor: an output of an operation.

Source: TensorFlow python/framework/tensor.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import GenericAlias
from typing import TYPE_CHECKING, Any, NoReturn

from opkernel.errors import OpError
from opkernel.graph.building.operators import TensorOperators
from opkernel.graph.core.runtime_hooks import run_fetches
from opkernel.types import DataType, PartialTensorShape

if TYPE_CHECKING:
    from opkernel.graph.core.graph import Graph
    from opkernel.graph.core.operation import Operation


class Tensor(TensorOperators):
    """An output of an operation: a name for values that only a running graph has.

    Attributes:
        op: the operation that gives it.
        value_index: which of its outputs it is.
    """

    __slots__ = ("__weakref__", "op", "value_index")

    def __class_getitem__(cls, dtype: Any, /) -> GenericAlias:
        """`Tensor["T"]`: a hint of `opkernel.custom_ops`."""
        return GenericAlias(cls, dtype)

    def __init__(self, op: Operation, value_index: int) -> None:
        self.op = op
        self.value_index = value_index

    @property
    def name(self) -> str:
        """`node:index`."""
        return f"{self.op.name}:{self.value_index}"

    @property
    def graph(self) -> Graph:
        """The graph that it belongs to."""
        return self.op.graph

    @property
    def device(self) -> str:
        """The device that its operation asks for."""
        return self.op.device

    @property
    def dtype(self) -> DataType:
        """The type of its elements; DT_INVALID where the op is not registered."""
        return self.op.signature.output_types[self.value_index]

    @property
    def shape(self) -> PartialTensorShape:
        """Its shape, as far as it is known before the graph runs.

        Raises:
            InvalidArgumentError: the shapes of an imported graph disagree.
        """
        graph = self.op.graph
        with graph.lock:
            return graph.refiner.shape_of(self)

    def get_shape(self) -> PartialTensorShape:
        """`shape`."""
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """Merge a shape that the caller knows into its shape.

        Raises:
            InvalidArgumentError: it is not compatible with the known shape.
        """
        graph = self.op.graph
        with graph.lock:
            graph.refiner.set_shape(self, shape)

    def consumers(self) -> list[Operation]:
        """The operations that take it, once for each of their inputs that it is."""
        return [consumer for consumer, _ in self.consumer_edges()]

    def consumer_edges(self) -> list[tuple[Operation, int]]:
        """The operations that take it, and as which input."""
        index = self.value_index
        edges = self.op.consumer_edges()
        return [(op, at) for op, at in edges if at >= 0 and op.edges[2 * at + 1] == index]

    def eval(self, feed_dict: Mapping[Any, Any] | None = None, session: Any | None = None) -> Any:
        """Its value from `session`, or from the default session."""
        return run_fetches(self.graph, self, feed_dict, session)

    def __repr__(self) -> str:
        return (
            f"<opkernel.Tensor {self.name!r} shape={self._shape_text()} dtype={self.dtype.tf_name}>"
        )

    def _shape_text(self) -> str:
        """The shape as a tuple of Python, as TensorFlow shows it."""
        try:
            shape = self.shape
        except OpError:
            return "<contradictory>"
        return "<unknown>" if shape.rank is None else str(tuple(shape.as_list()))

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle it as its graph and its name."""
        return type(self.graph).get_tensor_by_name, (self.graph, self.name)

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(_no_value(self, "a NumPy array"))

    def __bool__(self) -> NoReturn:
        raise TypeError(_no_value(self, "a Python bool"))

    def __len__(self) -> NoReturn:
        raise TypeError(_no_value(self, "a sequence"))

    def __iter__(self) -> NoReturn:
        raise TypeError(_no_value(self, "a sequence"))


def tensors_in(value: Any) -> Iterator[Tensor]:
    """The tensor that a value is or stands for, or those in a list or tuple of any depth."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from tensors_in(item)
        return
    convert = getattr(value, "_as_graph_element", None)
    element = value if convert is None else convert()
    if isinstance(element, Tensor):
        yield element


def _no_value(tensor: Tensor, wanted: str) -> str:
    return (
        f"{tensor.name!r} is a symbolic tensor and cannot be used as {wanted}: it has no value "
        f"until its graph runs. Use opkernel.cond or opkernel.while_loop to decide by its value"
    )
