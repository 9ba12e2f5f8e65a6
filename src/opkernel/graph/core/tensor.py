"""Tensor: an output of an operation.

Source: TensorFlow python/framework/tensor.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import GenericAlias
from typing import TYPE_CHECKING, Any, NoReturn

from opkernel.errors import OpError
from opkernel.graph.core.node import graph_element
from opkernel.graph.core.tensor_name import format_input
from opkernel.slots import Slot
from opkernel.types import DataType, PartialTensorShape

if TYPE_CHECKING:
    from opkernel.graph.core.graph import Graph
    from opkernel.graph.core.operation import Operation

_OPERATORS: Slot[Callable[..., Tensor]] = Slot("operators of tensors")
"""Adds the operation of an operator to the graph, by the operator's name and the operands."""

_NUMPY: Slot[Callable[[str, tuple[Any, ...], Mapping[str, Any]], Any]] = Slot(
    "functions of NumPy on tensors"
)
"""Adds the operations of a function of NumPy, by its name and its arguments."""


def _operate(name: str, *operands: Any) -> Tensor:
    try:
        return _OPERATORS.get()(name, *operands)
    except Exception as error:
        from opkernel.tracebacks import hide_frames

        hide_frames(error)
        raise


def _method(name: str) -> Callable[..., Any]:
    """A method that arrays have, too."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        return _NUMPY.get()(name, (self, *args), kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"`numpy.{name}` of it."
    return method


def _binary(name: str) -> tuple[Callable[[Any, Any], Tensor], Callable[[Any, Any], Tensor]]:
    """The methods of an operator, for a tensor on the left and for one on the right."""

    def forward(self: Tensor, other: Any) -> Tensor:
        return _operate(name, self, other)

    def reflected(self: Tensor, other: Any) -> Tensor:
        return _operate(name, other, self)

    return forward, reflected


_REDUCTIONS = {"add": "sum", "maximum": "max", "minimum": "min", "multiply": "prod"}


class Tensor:
    """An output of an operation: a name for values that only a running graph has.

    Operators add operations to the graph. `==` and `hash` go by identity, so that tensors may be keys.

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

    def _as_node_def_input(self) -> str:
        """Its name as an input of a NodeDef: `node`, or `node:index` for the later outputs."""
        return format_input(self.op.name, self.value_index)

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

    __add__, __radd__ = _binary("add")
    __sub__, __rsub__ = _binary("sub")
    __mul__, __rmul__ = _binary("mul")
    __truediv__, __rtruediv__ = _binary("truediv")
    __floordiv__, __rfloordiv__ = _binary("floordiv")
    __mod__, __rmod__ = _binary("mod")
    __pow__, __rpow__ = _binary("pow")
    __matmul__, __rmatmul__ = _binary("matmul")
    __and__, __rand__ = _binary("and")
    __or__, __ror__ = _binary("or")
    __xor__, __rxor__ = _binary("xor")
    __lt__ = _binary("lt")[0]
    __le__ = _binary("le")[0]
    __gt__ = _binary("gt")[0]
    __ge__ = _binary("ge")[0]
    __getitem__ = _binary("getitem")[0]

    all, any = _method("all"), _method("any")
    argmax, argmin = _method("argmax"), _method("argmin")
    astype = _method("astype")
    clip = _method("clip")
    cumprod, cumsum = _method("cumprod"), _method("cumsum")
    dot = _method("dot")
    max, min = _method("max"), _method("min")
    mean, std, var = _method("mean"), _method("std"), _method("var")
    prod, sum = _method("prod"), _method("sum")
    ravel, squeeze, swapaxes = _method("ravel"), _method("squeeze"), _method("swapaxes")
    round = _method("round")

    def reshape(self, *shape: Any) -> Any:
        """It with another shape, given as a list or as several sizes; one size may be -1."""
        return _NUMPY.get()("reshape", (self, shape[0] if len(shape) == 1 else shape), {})

    def transpose(self, *axes: Any) -> Any:
        """It with its axes in another order, given as a list or one by one; reversed if none are given."""
        order = axes[0] if len(axes) == 1 else axes or None
        return _NUMPY.get()("transpose", (self, order), {})

    @property
    def T(self) -> Any:  # noqa: N802  # as arrays have it
        """It with its axes in reverse order."""
        return self.transpose()

    @property
    def ndim(self) -> int | None:
        """Its rank; None if that is unknown."""
        return self.shape.rank

    @property
    def numpy(self) -> NoReturn:
        """Not there: a tensor of a graph has no value before the graph runs."""
        raise AttributeError(_no_value(self, "an array"), name="numpy")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """What NumPy asks where a tensor is an argument of a ufunc."""
        name = ufunc.__name__
        if method == "reduce" and name in _REDUCTIONS:
            return _NUMPY.get()(_REDUCTIONS[name], inputs, {"axis": 0, **kwargs})
        if method != "__call__":
            name = f"{name}.{method}"
        out = kwargs.pop("out", None)
        if out is not None and out[0] is not inputs[0]:  # but for `array += tensor`
            raise TypeError(f"numpy.{name} cannot write a tensor of a graph into an array")
        return _NUMPY.get()(name, inputs, kwargs)

    def __array_function__(
        self, func: Any, types: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """What NumPy asks where a tensor is an argument of another function."""
        name = f"{func.__module__}.{func.__name__}".removeprefix("numpy.")
        return _NUMPY.get()(name, args, kwargs)

    def __eq__(self, other: object) -> bool:  # an array on the other side compares elements
        return self is other

    __hash__ = object.__hash__

    def __neg__(self) -> Tensor:
        return _operate("neg", self)

    def __abs__(self) -> Tensor:
        return _operate("abs", self)

    def __invert__(self) -> Tensor:
        return _operate("invert", self)

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


def _no_value(tensor: Tensor, wanted: str) -> str:
    return (
        f"{tensor.name!r} is a symbolic tensor and cannot be used as {wanted}: it has no value "
        f"until its graph runs. Use opkernel.cond or opkernel.while_loop to decide by its value"
    )
