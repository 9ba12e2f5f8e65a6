"""Variable: a tensor that keeps its value between calls, and can be assigned to.

Source: TensorFlow python/ops/resource_variable_ops.py, python/ops/variables.py.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.errors import FailedPreconditionError, InvalidArgumentError, OpError
from opkernel.graph import Graph, Tensor
from opkernel.graph.core.default_graph import innermost_default
from opkernel.graph.tracing.nested_structure import map_structure
from opkernel.messages import short_repr
from opkernel.opdef import ShapeAndType
from opkernel.opdef.shapes.shape_algebra import make_shape_handle
from opkernel.ops.variables.var import Var, frozen
from opkernel.runtime.calls.eager import execute
from opkernel.tracebacks import entrances
from opkernel.types import (
    DataType,
    PartialTensorShape,
    ResourceHandle,
    array_from_python,
    as_dtype,
    dtype_of_array,
    natural_dtype,
)

_ANONYMOUS = "cd2c89b7-88b7-44c8-ad83-06c2a9158347"
"""The shared name of resources that go with their handles: TensorFlow's ResourceHandle::ANONYMOUS_NAME."""


def _binary(function: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    """The methods for `variable op other` and `other op variable`."""

    def forward(self: Variable, other: Any) -> Any:
        return function(self.value, _value_of(other))

    def reflected(self: Variable, other: Any) -> Any:
        return function(_value_of(other), self.value)

    return forward, reflected


def _value_of(other: Any) -> Any:
    return other.value if isinstance(other, Variable) else other


@entrances
class Variable:
    """A tensor that keeps its value, for Python code and for functions that are traced.

        weights = opkernel.Variable(np.zeros((2, 1), np.float32), name="weights")
        weights.assign_add(np.ones((2, 1), np.float32))
        print(weights.numpy())

    It stands for its value wherever a tensor is expected. Its memory is free when nothing refers to it
    any more. Reading and assigning may go on in several threads: nobody sees half of an assignment.

    Args:
        initial_value: Its first value: an array, or what NumPy makes one of.
        trainable: Whether training changes it.
        dtype: The type of its elements; that of the value, if not given.
        name: What to call it; names need not differ.
        shape: Its shape, of which parts may be unknown; that of the value, if not given.

    Raises:
        InvalidArgumentError: the value makes no tensor, or does not fit the type or shape.
        FailedPreconditionError: a function is being traced: each of its calls would make a variable.
    """

    captured_spec = DataType.DT_RESOURCE, PartialTensorShape([])

    def __init__(
        self,
        initial_value: Any,
        *,
        trainable: bool = True,
        dtype: Any = None,
        name: str | None = None,
        shape: Any = None,
    ) -> None:
        if innermost_default() is not None:
            raise FailedPreconditionError(
                "A Variable is made outside of functions and graphs: make it before, and use it there"
            )
        value = _as_array(initial_value, None if dtype is None else as_dtype(dtype))
        found = PartialTensorShape(value.shape if shape is None else shape)
        if not found.is_compatible_with(PartialTensorShape(value.shape)):
            raise InvalidArgumentError(
                f"The initial value has the shape {PartialTensorShape(value.shape)}, and the variable {found}"
            )
        stored = dtype_of_array(value)
        assert stored is not None
        self._set_up(None, stored, found, name or "Variable", trainable)
        self._give(value)

    @classmethod
    def of_handle(
        cls,
        handle: ResourceHandle | None,
        *,
        dtype: DataType,
        shape: Any = None,
        name: str = "Variable",
        trainable: bool = True,
        initializer: Callable[[], Any] | None = None,
    ) -> Variable:
        """The variable of a handle.

        Args:
            handle: The handle; a new one, made when the variable is first used, if None.
            dtype: The type of its elements.
            shape: Its shape.
            name: What to call it.
            trainable: Whether training changes it.
            initializer: Gives the first value, an array of that type which nobody else has, and is called when
                the variable is first used; None if the variable has a value, or is to have none yet.
        """
        variable = cls.__new__(cls)
        found = shape if isinstance(shape, PartialTensorShape) else PartialTensorShape(shape)
        variable._set_up(handle, dtype, found, name, trainable)
        variable._initializer = initializer
        return variable

    def _set_up(
        self,
        handle: ResourceHandle | None,
        dtype: DataType,
        shape: PartialTensorShape,
        name: str,
        trainable: bool,
    ) -> None:
        self._handle = handle
        self._initializer: Callable[[], Any] | None = None
        self._lock = threading.Lock()
        self._read: tuple[Graph, int, Tensor] | None = None
        self._dtype, self._shape = dtype, shape
        self.name = name
        self.trainable = trainable

    # What it is.

    @property
    def dtype(self) -> DataType:
        """The type of its elements."""
        return self._dtype

    @property
    def shape(self) -> PartialTensorShape:
        """Its shape, of which parts may be unknown."""
        return self._shape

    @property
    def ndim(self) -> int | None:
        """Its rank; None if that is unknown."""
        return self.shape.rank

    def __repr__(self) -> str:
        """What it is, with its value; the middle of a long value is left out."""
        try:
            value = self.numpy()
        except OpError as error:
            text = f"no value: {short_repr(error.message)}"
        else:
            lines = np.array2string(value, threshold=16, edgeitems=2, separator=", ").splitlines()
            text = " ".join([line.strip() for line in lines if line])
            if value.dtype != object:  # numbers are padded
                text = " ".join(text.split()).replace("[ ", "[").replace(" ,", ",")
        return f"<opkernel.Variable {self.name!r} {self.dtype.tf_name}{self.shape} {text}>"

    # Its value.

    @property
    def value(self) -> Any:
        """Its value: an array, or where a function is being traced a tensor of that.

        Raises:
            FailedPreconditionError: it has no value.
        """
        graph = innermost_default()
        if graph is None:
            return self.numpy()
        if self._read is None or self._read[:2] != (graph, graph.version):
            tensor = raw_ops.ReadVariableOp(resource=graph.tensor_of(self), dtype=self.dtype)
            self._read = graph, graph.version, tensor
        return self._read[2]

    def numpy(self) -> Any:
        """Its value now, as an array of its own.

        Raises:
            FailedPreconditionError: it has no value.
        """
        return execute("ReadVariableOp", {"resource": self.resource_handle}, {"dtype": self.dtype})

    def assign(self, value: Any) -> None:
        """Give it a value.

        Raises:
            InvalidArgumentError: the value has another type or shape.
        """
        if innermost_default() is None:
            self._give(_as_array(value, self.dtype))
        else:
            self._change("AssignVariableOp", value)

    def assign_add(self, delta: Any) -> None:
        """Add to its value.

        Raises:
            InvalidArgumentError: the value has another type or shape.
            FailedPreconditionError: the variable has no value.
        """
        self._change("AssignAddVariableOp", delta)

    def assign_sub(self, delta: Any) -> None:
        """Subtract from its value; errors are those of `assign_add`."""
        self._change("AssignSubVariableOp", delta)

    def _change(self, op: str, value: Any) -> None:
        if not isinstance(value, Tensor | Variable):
            value = _as_array(value, self.dtype)
        getattr(raw_ops, op)(resource=self.handle, value=value)

    def _give(self, value: Any) -> None:
        """Assign from Python; a value that was still to be brought is not needed any more."""
        if not self.shape.is_compatible_with(PartialTensorShape(value.shape)):
            raise InvalidArgumentError(
                f"Variable {self.name!r} has the shape {self.shape}, and the value "
                f"{PartialTensorShape(value.shape)}"
            )
        with self._lock:
            self._make(value)

    def _make(self, value: Any = None) -> ResourceHandle:
        """Make the handle, if there is none, and assign a value, if one is given; `_lock` is held."""
        if self._handle is None:
            attrs = {"dtype": self.dtype, "shape": self.shape, "shared_name": _ANONYMOUS}
            self._handle = execute("VarHandleOp", {}, attrs)
        if value is not None:
            execute("AssignVariableOp", {"resource": self._handle, "value": value}, {})
            self._initializer = None
        return self._handle

    # Copies, which share nothing with it.

    def __reduce__(self) -> tuple[Any, ...]:
        return _remade, (self.numpy(), self.trainable, self.dtype, self.name, self.shape)

    # Its resource.

    @property
    def handle(self) -> Any:
        """Its handle: for ops on resources, or where a function is being traced a tensor of that."""
        graph = innermost_default()
        return self.resource_handle if graph is None else graph.tensor_of(self)

    @property
    def resource_handle(self) -> ResourceHandle:
        """The handle itself; what brings the first value has done so."""
        handle = self._handle
        if handle is None or self._initializer is not None:
            with self._lock:
                handle = self._make()
                if self._initializer is not None:
                    self._begin(handle, self._initializer())
        return handle

    def _begin(self, handle: ResourceHandle, value: Any) -> None:
        """Take over the first value: AssignVariableOp would make a copy. `_lock` is held."""
        assert isinstance(handle.resource, Var)
        handle.resource.assign(frozen(value), self.dtype)
        self._initializer = None

    captured_value = resource_handle  # which functions take of it

    @property
    def handle_facts(self) -> Sequence[ShapeAndType]:
        """What shape inference may know of it."""
        return [ShapeAndType(make_shape_handle(self.shape), self.dtype)]

    # A value among others.

    def _as_graph_element(self) -> Any:
        """The tensor that it is where a function is being traced; itself elsewhere."""
        return self if innermost_default() is None else self.value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Its value, for NumPy; where a function is being traced it has none."""
        return np.asarray(self.value, dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """What NumPy asks where a variable is an argument of a ufunc: its value takes its place."""
        return getattr(ufunc, method)(*map(_value_of, inputs), **kwargs)

    def __array_function__(
        self, func: Any, types: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """What NumPy asks where a variable is an argument of another function."""
        return func(*map_structure(_value_of, args), **map_structure(_value_of, kwargs))

    def __getitem__(self, index: Any) -> Any:
        return self.value[index]

    def __len__(self) -> int:
        dims = self.shape.dims
        size = self.numpy().shape[0] if not dims or dims[0] is None else dims[0]
        return int(size)

    def __float__(self) -> float:
        return float(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    __add__, __radd__ = _binary(operator.add)
    __sub__, __rsub__ = _binary(operator.sub)
    __mul__, __rmul__ = _binary(operator.mul)
    __matmul__, __rmatmul__ = _binary(operator.matmul)
    __truediv__, __rtruediv__ = _binary(operator.truediv)
    __floordiv__, __rfloordiv__ = _binary(operator.floordiv)
    __mod__, __rmod__ = _binary(operator.mod)
    __pow__, __rpow__ = _binary(operator.pow)
    __lt__ = _binary(operator.lt)[0]
    __le__ = _binary(operator.le)[0]
    __gt__ = _binary(operator.gt)[0]
    __ge__ = _binary(operator.ge)[0]

    def __neg__(self) -> Any:
        return -self.value

    def __abs__(self) -> Any:
        return abs(self.value)

    __hash__ = object.__hash__  # `==` is that of objects: variables are keys


def assign_saved(what: str, values: Sequence[tuple[Variable, Any]]) -> None:
    """Give variables the values that a checkpoint has for them; all or none.

    Raises:
        InvalidArgumentError: a value has another type or shape; the message says `what` the variable is.
    """
    for variable, value in values:
        shape = PartialTensorShape(value.shape)
        if value.dtype != variable.dtype.numpy_dtype or not variable.shape.is_compatible_with(
            shape
        ):
            raise InvalidArgumentError(
                f"{what} {variable.name!r} is {variable.dtype.tf_name}{variable.shape}, and the checkpoint has "
                f"{value.dtype}{shape}"
            )
    for variable, value in values:
        variable.assign(value)


def _remade(
    value: Any, trainable: bool, dtype: DataType, name: str, shape: PartialTensorShape
) -> Variable:
    return Variable(value, trainable=trainable, dtype=dtype, name=name, shape=shape)


def _as_array(value: Any, dtype: DataType | None) -> Any:
    """A value as an array of a type.

    Raises:
        InvalidArgumentError: the value makes no tensor, or one of another type.
    """
    if isinstance(value, Variable):
        value = value.numpy()
    wanted = natural_dtype(value) if dtype is None else dtype
    if isinstance(value, np.ndarray | np.generic) and dtype_of_array(value) != wanted:
        raise InvalidArgumentError(
            f"The variable is of type {wanted.tf_name}, and the value of {natural_dtype(value).tf_name}"
        )
    try:
        return array_from_python(value, wanted)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(
            f"The value makes no {wanted.tf_name} tensor: {error}"
        ) from error
