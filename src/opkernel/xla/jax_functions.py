"""jax_function: a model as a pure function of JAX, which `jax.jit`, `jax.vmap` and `jax.grad` transform.

The kernels for XLA compute with `jax.numpy`, so they run on whatever JAX traces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from opkernel.errors import (
    InvalidArgumentError,
    NotFoundError,
    OpError,
    UnimplementedError,
    as_op_error,
)
from opkernel.graph import ConcreteFunction, Tensor, TensorSpec
from opkernel.graph.core.edges import Edge
from opkernel.graph.io.signature_names import DEFAULT_SIGNATURE
from opkernel.graph.tracing.function_tracing import function as traced
from opkernel.graph.tracing.nested_structure import map_structure
from opkernel.messages import did_you_mean
from opkernel.types import Array, DataType, PartialTensorShape
from opkernel.types.python_values import dtype_of_array
from opkernel.xla.compiler import functional_form, without_notes
from opkernel.xla.graph_compiler import GraphCompiler
from opkernel.xla.jax_numpy import jax, jnp, wide_types
from opkernel.xla.op_registry import global_xla_op_registry
from opkernel.xla.resource import XlaResource

Variables = Mapping[str, Any]
"""The values of variables by name: a pytree."""


@runtime_checkable
class HasValue(Protocol):
    """A variable."""

    def numpy(self) -> Any:
        """Its value."""
        ...


class HasSignatures(Protocol):
    """A loaded model."""

    @property
    def signatures(self) -> Mapping[str, Any]:
        """Its computations with named inputs and outputs."""
        ...


def jax_function(
    model: HasSignatures | ConcreteFunction, signature: str = DEFAULT_SIGNATURE
) -> JaxFunction:
    """A signature of a loaded model, or a traced function, as a pure function of JAX.

        f = opkernel.xla.jax_function(opkernel.load("model"))
        y = f(x=x)["y"]
        slope = jax.grad(lambda variables: loss(f.apply(variables, x=x)[0]["y"]))(f.variables)

    Args:
        model: What `opkernel.load` gives, or a ConcreteFunction.
        signature: The name of the signature.

    Raises:
        NotFoundError: the model has no such signature.
        InvalidArgumentError: it is no loaded model.
        UnimplementedError: JAX is not installed, or the model has strings, tables or other things that JAX has not.
    """
    if isinstance(model, ConcreteFunction):
        return JaxFunction(model)
    signatures = getattr(model, "signatures", None)
    if not isinstance(signatures, Mapping):
        raise InvalidArgumentError(
            f"Expected a model that opkernel.load gives, or a ConcreteFunction, got {type(model).__name__}"
        )
    if signature not in signatures:
        raise NotFoundError(
            f"The model has no signature {signature!r}{did_you_mean(signature, signatures)}; "
            f"it has {', '.join(signatures) or 'none'}"
        )
    chosen = signatures[signature]
    return JaxFunction(_traced_signature(chosen), sorted(chosen.inputs))


def _traced_signature(signature: Any) -> ConcreteFunction:
    """A function that calls a signature with its inputs by name, in the order of the names."""

    def call(**inputs: Any) -> Any:
        return signature(**inputs)

    specs = {
        name: TensorSpec(spec.shape, spec.dtype, name)
        for name, spec in signature.inputs.items()
        if isinstance(spec, TensorSpec)
    }
    if len(specs) < len(signature.inputs):
        raise InvalidArgumentError(f"{signature} takes sparse or ragged tensors, which JAX has not")
    return traced(call).get_concrete_function(**specs)


class _Captured(NamedTuple):
    """What a function has captured.

    Attributes:
        name: Its name, which no other has.
        value: The value of a variable, or the constant.
        dtype: The type of the value.
        is_variable: Whether it is a variable.
    """

    name: str
    value: Array
    dtype: DataType
    is_variable: bool

    @classmethod
    def of(cls, tensor: Tensor, captured: Any) -> _Captured:
        """What stands for a tensor of a function.

        Raises:
            UnimplementedError: it is a table or another resource that is not a variable.
            FailedPreconditionError: the variable has no value.
        """
        is_variable = tensor.dtype is DataType.DT_RESOURCE
        if is_variable and not isinstance(captured, HasValue):
            raise UnimplementedError(
                f"{tensor.op.name!r} is a resource but not a variable: JAX has no tables, queues or datasets"
            )
        value = np.asarray(captured.numpy() if is_variable else captured.captured_value)
        dtype = dtype_of_array(value)
        if dtype is None or dtype is DataType.DT_STRING:
            raise UnimplementedError(f"{tensor.op.name!r} holds values that JAX has not")
        return cls(tensor.op.name, value, dtype, is_variable)


class JaxFunction:
    """A pure function of arrays: see `jax_function`.

    Arrays are cast to the types of the inputs where no value changes its kind. Results of 64 bits have 32 where JAX
    is set to that, as JAX's own functions have.

    Args:
        function: The function.
        names: What to call its inputs; as its placeholders by default.

    Attributes:
        variables: The values that the model's variables had when the function was made, by name.
        inputs: What it takes by name, as TensorSpecs.
    """

    def __init__(self, function: ConcreteFunction, names: Sequence[str] = ()) -> None:
        graph = function.graph
        captured = [*graph.captured_values]
        count = len(graph.inputs) - len(captured)
        parameters = graph.inputs[:count]
        for one in parameters:
            if one.dtype is DataType.DT_STRING:
                raise UnimplementedError(f"{one.op.name!r} takes string, which JAX has not")
        specs = [TensorSpec(one.shape, one.dtype) for one in parameters]
        self.inputs = dict(zip(names or [one.op.name for one in parameters], specs, strict=True))
        self._function = function
        self._captured = [
            _Captured.of(tensor, one)
            for tensor, one in zip(graph.inputs[count:], captured, strict=True)
        ]
        narrow = _narrowing()
        # Also where JAX traces its caller, the variables are values.
        with wide_types(), jax().ensure_compile_time_eval():
            self.variables: dict[str, Any] = {
                one.name: narrow(jnp().asarray(one.value))
                for one in self._captured
                if one.is_variable
            }
        edges = [(tensor.op, tensor.value_index) for tensor in graph.inputs]
        self._edges, self._fetches, self._targets = functional_form(
            edges, graph.outputs, graph.control_outputs
        )
        self._jitted: Callable[..., Any] = jax().jit(self.apply)

    def __call__(self, **inputs: Any) -> Any:
        """The results for arrays by name, with the model's own variables.

        Raises:
            TypeError: an input is missing or unknown.
            InvalidArgumentError: an array does not fit its input.
            OpError: a node does not compile; the message names it.
        """
        try:
            return self._jitted(self.variables, **inputs)[0]
        except OpError as error:
            raise without_notes(error) from error.__cause__

    def apply(self, variables: Variables, **inputs: Any) -> tuple[Any, dict[str, Any]]:
        """The results for values of the variables and arrays by name, and the variables afterwards.

        Raises:
            TypeError: an input or a variable is missing or unknown.
            InvalidArgumentError: an array does not fit.
            OpError: a node does not compile; the message names it.
        """
        _check_names("input", inputs, self.inputs)
        _check_names("variable", variables, self.variables)
        narrow = _narrowing()
        with wide_types():
            resources: dict[str, XlaResource] = {}
            values: list[Any] = [
                _fitted(inputs[name], name, spec) for name, spec in self.inputs.items()
            ]
            for one in self._captured:
                if one.is_variable:
                    value = _fitted(
                        variables[one.name], one.name, TensorSpec(one.value.shape, one.dtype)
                    )
                    resources[one.name] = XlaResource(one.name, one.dtype, value, len(values))
                values.append(resources.get(one.name, one.value))
            results = self._compiled(dict(zip(self._edges, values, strict=True)))
            packed = self._packed([narrow(one) for one in results])
            return packed, {name: narrow(one.value) for name, one in resources.items()}

    def _compiled(self, given: dict[Edge, Any]) -> list[Any]:
        compiler = GraphCompiler("XLA_CPU_JIT", global_xla_op_registry())
        try:
            return compiler.compile(self._fetches, self._targets, given)
        except OpError:
            raise
        except Exception as error:
            raise as_op_error(error) from error

    def _packed(self, results: list[Any]) -> Any:
        """The results in the form of the function's."""
        places = {
            id(tensor): value
            for tensor, value in zip(self._function.graph.outputs, results, strict=True)
        }
        return map_structure(lambda tensor: places[id(tensor)], self._function.structured_outputs)

    def __repr__(self) -> str:
        takes = ", ".join(f"{name}: {spec}" for name, spec in self.inputs.items())
        return f"<opkernel.xla.JaxFunction ({takes}), {len(self.variables)} variables>"


def _check_names(what: str, given: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    for name in given:
        if name not in known:
            raise TypeError(f"There is no {what} {name!r}{did_you_mean(name, known)}")
    missing = [name for name in known if name not in given]
    if missing:
        raise TypeError(f"The {what} {', '.join(map(repr, missing))} is missing")


def _fitted(value: Any, name: str, spec: TensorSpec) -> Any:
    """An array of the type of a spec.

    Raises:
        InvalidArgumentError: it has another shape, or values of another kind.
    """
    array = jnp().asarray(value)
    wanted = spec.dtype.base.numpy_dtype
    if not np.can_cast(array.dtype, wanted, "same_kind"):
        raise InvalidArgumentError(
            f"{name!r} has dtype {array.dtype}, and takes {spec.dtype.tf_name}"
        )
    if not spec.shape.is_compatible_with(PartialTensorShape(array.shape)):
        raise InvalidArgumentError(f"{name!r} has shape {array.shape}, and takes {spec.shape}")
    return array.astype(wanted)


def _narrowing() -> Callable[[Any], Any]:
    """What gives an array the type that it has by the user's own settings of JAX, outside of `wide_types`."""
    is_wide = jax().config.jax_enable_x64
    narrower = {
        "int64": "int32",
        "uint64": "uint32",
        "float64": "float32",
        "complex128": "complex64",
    }

    def narrow(value: Any) -> Any:
        array: Any = jnp().asarray(value)
        name = str(array.dtype)
        return array if is_wide else array.astype(narrower.get(name, array.dtype))

    return narrow
