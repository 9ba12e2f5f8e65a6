"""Tensor: an output of an operation.

Source: TensorFlow python/framework/tensor.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import GenericAlias
from typing import TYPE_CHECKING, Any, NoReturn

from opkernel.errors import OpError
from opkernel.graph.core.elements import graph_element
from opkernel.slots import Slot
from opkernel.types import DataType, PartialTensorShape

if TYPE_CHECKING:
    from opkernel.graph.core.graph import Graph
    from opkernel.graph.core.operation import Operation

_OPERATORS: Slot[Callable[..., Tensor]] = Slot("operators of tensors")
"""Adds the operation of an operator to the graph, by the operator's name and the operands."""


class Tensor:
    """An output of an operation: a name for values that only a running graph has.

    Operators add operations to the graph. `==` and `hash` go by identity, so that tensors may be keys.

    Attributes:
        op: the operation that gives it.
        value_index: which of its outputs it is.
    """

    __slots__ = ("__weakref__", "op", "value_index")
    __array_ufunc__ = None  # NumPy's arrays leave the operator to the tensor on the other side

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
        return self.graph._run(self, feed_dict, session)

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

    def __add__(self, other: Any) -> Tensor:
        return _operate("add", self, other)

    def __radd__(self, other: Any) -> Tensor:
        return _operate("add", other, self)

    def __sub__(self, other: Any) -> Tensor:
        return _operate("sub", self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return _operate("sub", other, self)

    def __mul__(self, other: Any) -> Tensor:
        return _operate("mul", self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return _operate("mul", other, self)

    def __truediv__(self, other: Any) -> Tensor:
        return _operate("truediv", self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return _operate("truediv", other, self)

    def __floordiv__(self, other: Any) -> Tensor:
        return _operate("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Tensor:
        return _operate("floordiv", other, self)

    def __mod__(self, other: Any) -> Tensor:
        return _operate("mod", self, other)

    def __rmod__(self, other: Any) -> Tensor:
        return _operate("mod", other, self)

    def __pow__(self, other: Any) -> Tensor:
        return _operate("pow", self, other)

    def __rpow__(self, other: Any) -> Tensor:
        return _operate("pow", other, self)

    def __matmul__(self, other: Any) -> Tensor:
        return _operate("matmul", self, other)

    def __rmatmul__(self, other: Any) -> Tensor:
        return _operate("matmul", other, self)

    def __and__(self, other: Any) -> Tensor:
        return _operate("and", self, other)

    def __rand__(self, other: Any) -> Tensor:
        return _operate("and", other, self)

    def __or__(self, other: Any) -> Tensor:
        return _operate("or", self, other)

    def __ror__(self, other: Any) -> Tensor:
        return _operate("or", other, self)

    def __xor__(self, other: Any) -> Tensor:
        return _operate("xor", self, other)

    def __rxor__(self, other: Any) -> Tensor:
        return _operate("xor", other, self)

    def __lt__(self, other: Any) -> Tensor:
        return _operate("lt", self, other)

    def __le__(self, other: Any) -> Tensor:
        return _operate("le", self, other)

    def __gt__(self, other: Any) -> Tensor:
        return _operate("gt", self, other)

    def __ge__(self, other: Any) -> Tensor:
        return _operate("ge", self, other)

    def __neg__(self) -> Tensor:
        return _operate("neg", self)

    def __abs__(self) -> Tensor:
        return _operate("abs", self)

    def __invert__(self) -> Tensor:
        return _operate("invert", self)

    def __getitem__(self, key: Any) -> Tensor:
        return _operate("getitem", self, key)

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
    element = graph_element(value)
    if isinstance(element, Tensor):
        yield element


def _operate(name: str, *operands: Any) -> Tensor:
    return _OPERATORS.get()(name, *operands)


def _no_value(tensor: Tensor, wanted: str) -> str:
    return (
        f"{tensor.name!r} is a symbolic tensor and cannot be used as {wanted}: it has no value "
        f"until its graph runs. Use opkernel.cond or opkernel.while_loop to decide by its value"
    )
