"""TFSMLayer: a SavedModel as a layer of Keras, computed by opkernel.

With JAX the layer is a function of JAX (`opkernel.xla.jax_function`), which `jit` and `grad` transform, where XLA
compiles it. Elsewhere, and for what XLA does not compile, arrays leave the backend and come back; then no gradient
passes the layer.

Source: Keras src/export/tfsm_layer.py.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from opkernel.device.permissions import Permissions
from opkernel.errors import InvalidArgumentError, NotFoundError, OpError, UnimplementedError
from opkernel.graph import ConcreteFunction, Tensor, TensorSpec, function
from opkernel.graph.tracing.nested_structure import map_structure
from opkernel.interop import LoadedModel, load
from opkernel.libraries import check_installed, library
from opkernel.messages import did_you_mean
from opkernel.types import as_dtype

_BACKENDS = ("jax", "numpy", "torch")


def _import_keras() -> Any:
    check_installed("keras", "A layer of Keras")
    try:
        return library("keras", "A layer of Keras")
    except UnimplementedError as error:
        # Its backend is missing: TensorFlow, unless the user names another.
        raise UnimplementedError(
            f"Keras cannot be imported ({error.__cause__}): set KERAS_BACKEND to one of {', '.join(_BACKENDS)}"
        ) from error


_keras: Any = _import_keras()


class TFSMLayer(_keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """A layer that computes what an endpoint of a SavedModel computes; it does not train.

        layer = opkernel.keras.TFSMLayer("model", call_endpoint="serving_default")
        model = keras.Sequential([keras.Input((224, 224, 3)), layer])

    Args:
        filepath: The SavedModel.
        call_endpoint: A method of the model such as `serve`, or a signature.
        permissions: What the graph of the model may read and write, besides its own files.
        name: The name of the layer.
        dtype: The type that Keras notes for the layer; the endpoint has its own types.

    Attributes:
        loaded: The model.
        compiled: Functions of JAX, by what they compute.

    Raises:
        NotFoundError: the model has no such endpoint.
        UnimplementedError: Keras is not installed, or runs on TensorFlow, which has `keras.layers.TFSMLayer`.
        OpError: the model cannot be loaded.
    """

    def __init__(
        self,
        filepath: str | os.PathLike[str],
        call_endpoint: str = "serve",
        permissions: Permissions | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        backend = _keras.backend.backend()
        if backend not in _BACKENDS:
            raise UnimplementedError(
                f"Keras runs on {backend}: keras.layers.TFSMLayer loads SavedModels there"
            )
        super().__init__(trainable=False, name=name, dtype=dtype)
        self.filepath = os.fspath(filepath)
        self.call_endpoint = call_endpoint
        self.loaded = load(self.filepath, permissions=permissions)
        self._endpoint = _endpoint(self.loaded, call_endpoint)
        self._traced: dict[str, ConcreteFunction] = {}
        self.compiled: dict[ConcreteFunction, Any] = {}
        self.built = True

    def call(self, inputs: Any, training: bool = False, **kwargs: Any) -> Any:
        """The results of the endpoint, as tensors of the backend."""
        del training  # the endpoint is the one for inference
        return _COMPUTE[_keras.backend.backend()](self, inputs, kwargs)

    def compute_output_spec(self, inputs: Any, training: bool = False, **kwargs: Any) -> Any:
        """What the layer gives for symbolic inputs: KerasTensors."""
        results = self.concrete(inputs, kwargs).structured_outputs
        return map_structure(_keras_tensor, results)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shapes of the results for the shape of the input, of the backend's usual type."""
        spec = self.compute_output_spec(_keras.KerasTensor(input_shape))
        return map_structure(lambda one: one.shape, spec)

    def concrete(self, inputs: Any, keywords: Mapping[str, Any]) -> ConcreteFunction:
        """The endpoint, traced for inputs of these types and shapes; batches of all sizes share one."""
        specs = map_structure(_spec, (inputs, dict(keywords)))
        key = repr(specs)
        if key not in self._traced:
            given, named = specs
            self._traced[key] = function(self._endpoint).get_concrete_function(given, **named)
        return self._traced[key]

    def get_config(self) -> dict[str, Any]:
        """What `from_config` makes the same layer from."""
        return {
            "name": self.name,
            "filepath": self.filepath,
            "call_endpoint": self.call_endpoint,
        }


def _endpoint(model: LoadedModel, name: str) -> Callable[..., Any]:
    """The method or signature of a model.

    Raises:
        NotFoundError: there is none of this name.
    """
    method = getattr(model, name, None)
    if callable(method) and not name.startswith("_"):
        return method  # type: ignore[no-any-return]  # an attribute of somebody's object
    if name not in model.signatures:
        known = [*model.signatures]
        raise NotFoundError(
            f"The model has no endpoint {name!r}{did_you_mean(name, known)}; "
            f"its signatures are {', '.join(known) or 'none'}"
        )
    signature = model.signatures[name]

    def call(inputs: Any, **keywords: Any) -> Any:
        named = inputs if isinstance(inputs, Mapping) else {next(iter(signature.inputs)): inputs}
        return signature(**named, **keywords)

    return call


def _spec(value: Any) -> TensorSpec:
    """The type and shape of a tensor of any backend; the first axis counts the rows of any batch."""
    shape = tuple(value.shape)
    return TensorSpec(
        [None, *shape[1:]] if shape else [],
        as_dtype(str(_keras.backend.standardize_dtype(value.dtype))),
    )


def _keras_tensor(tensor: Tensor) -> Any:
    if tensor.shape.rank is None:
        raise InvalidArgumentError(f"{tensor.name} has an unknown rank, which Keras has not")
    return _keras.KerasTensor(tuple(tensor.shape.as_list()), dtype=tensor.dtype.base.tf_name)


def _by_arrays(layer: TFSMLayer, inputs: Any, keywords: Mapping[str, Any]) -> Any:
    """The results by arrays that leave the backend and come back."""
    arrays, named = map_structure(_keras.ops.convert_to_numpy, (inputs, dict(keywords)))
    results = layer.concrete(inputs, keywords)(arrays, **named)
    return map_structure(lambda one: _keras.ops.convert_to_tensor(np.asarray(one)), results)


def _by_jax(layer: TFSMLayer, inputs: Any, keywords: Mapping[str, Any]) -> Any:
    """The results by a function of JAX; by a call of JAX's out of its program where XLA does not compile it."""
    from opkernel.xla import jax_function  # JAX is slow to import

    concrete = layer.concrete(inputs, keywords)
    flat = _keras.tree.flatten((inputs, dict(keywords)))
    try:
        if concrete not in layer.compiled:
            layer.compiled[concrete] = jax_function(concrete)
        compiled = layer.compiled[concrete]
        return compiled(**dict(zip(compiled.inputs, flat, strict=True)))
    except OpError:
        return _by_callback(concrete, flat)


def _by_callback(concrete: ConcreteFunction, flat: Sequence[Any]) -> Any:
    """The results by a call out of JAX's program.

    Raises:
        InvalidArgumentError: the size of a result follows neither from the model nor from the batch.
    """
    from opkernel.xla.jax_numpy import jax  # it is the backend

    def shape_of(tensor: Tensor) -> Any:
        sizes = tensor.shape.as_list()
        if sizes and sizes[0] is None and flat[0].shape:
            sizes[0] = flat[0].shape[0]
        if None in sizes:
            raise InvalidArgumentError(
                f"JAX needs the shape of {tensor.name}, and it is {tensor.shape}"
            )
        return jax().ShapeDtypeStruct(
            sizes, jax().dtypes.canonicalize_dtype(tensor.dtype.base.numpy_dtype)
        )

    shapes = map_structure(shape_of, concrete.structured_outputs)

    def run(*arrays: Any) -> Any:
        results = concrete.call([np.asarray(one) for one in arrays])
        return map_structure(np.asarray, results)

    return jax().pure_callback(run, shapes, *flat)


_Compute: TypeAlias = Callable[[TFSMLayer, Any, Mapping[str, Any]], Any]


def _untraced(compute: _Compute) -> _Compute:
    """A function that `torch.compile` calls and does not look into: it computes with arrays of NumPy.

    Args:
        compute: the function; for another backend it is returned as it is.
    """
    torch = sys.modules.get("torch")  # Keras has imported it, if it is the backend
    return compute if torch is None else torch.compiler.disable(compute)


_COMPUTE: dict[str, _Compute] = {
    "jax": _by_jax,
    "numpy": _by_arrays,
    "torch": _untraced(_by_arrays),
}
