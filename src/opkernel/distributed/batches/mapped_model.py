"""MappedModel: a model that is called with batches of rows, whichever way it was saved."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from opkernel.device.permissions import NO_PERMISSIONS, Permissions
from opkernel.errors import InvalidArgumentError, NotFoundError, UnimplementedError
from opkernel.graph import TensorSpec, file_kind, load_graph
from opkernel.graph.core.structural_ops import ARG_OPS
from opkernel.graph.edit.interface import graph_outputs, split_by_need
from opkernel.graph.io.graph_files import begins_with_node
from opkernel.graph.io.signature_names import DEFAULT_SIGNATURE, default_signature
from opkernel.interop import Signature, load_as_session
from opkernel.messages import did_you_mean
from opkernel.records import dataclass
from opkernel.runtime import Session, SessionConfig
from opkernel.types import Array, DataType, TensorShape

_ONE_THREAD = SessionConfig(intra_op_parallelism_threads=1, inter_op_parallelism_threads=-1)


@dataclass(frozen=True)
class ModelSource:
    """What is needed to load a model, in this process or another.

    Attributes:
        path: the model.
        tags: those of its MetaGraph.
        signature: the name of its signature; None for the default one.
        jit: the engine that compiles parts of it.
        permissions: what its graph may read and write.
        libraries: modules that are imported first, for their ops and kernels.
        memory_limit_bytes: the most bytes of tensors at once in a process.
    """

    path: str
    tags: Sequence[str] | str | None = None
    signature: str | None = None
    jit: str = ""
    permissions: Permissions = NO_PERMISSIONS
    libraries: tuple[str, ...] = ()
    memory_limit_bytes: int | None = None

    def load(self, *, one_thread: bool = False) -> MappedModel:
        """The model.

        Args:
            one_thread: Whether its kernels run on the thread of the caller alone.

        Raises:
            OpError: as `opkernel.load` and `load_graph` do.
        """
        for name in self.libraries:
            importlib.import_module(name)
        options = {"config": _ONE_THREAD} if one_thread else {}
        is_graph = not os.path.isdir(self.path) and begins_with_node(self.path)
        if is_graph or not file_kind(self.path).may_be_saved:
            return self._of_graph(options)
        return self._of_saved_model(options)

    def _of_saved_model(self, options: Mapping[str, Any]) -> MappedModel:
        loaded = load_as_session(
            self.path, tags=self.tags, permissions=self.permissions, jit=self.jit
        )
        loaded.session_options.update(options)
        signature = self._chosen(loaded.signatures)
        inputs = {
            name: _plain(name, spec)
            for name, spec in signature.inputs.items()
            if name not in signature.defaults or not _is_scalar(spec)
        }

        def run(batch: Mapping[str, Any]) -> dict[str, Any]:
            return signature(**batch)

        return MappedModel(inputs, {*inputs} - {*signature.defaults}, run, loaded.close)

    def _chosen(self, signatures: Mapping[str, Signature]) -> Signature:
        """The signature that is asked for, the default one, or the only one."""
        known = ", ".join(signatures) or "none"
        if self.signature is not None:
            if self.signature not in signatures:
                raise NotFoundError(
                    f"{self.path} has no signature {self.signature!r}; it has {known}"
                )
            return signatures[self.signature]
        default = default_signature(signatures)
        if default is not None:
            return signatures[default]
        if not signatures:
            raise InvalidArgumentError(
                f"{self.path} has no signatures, so its inputs and outputs have no names; write the graph of some outputs "
                f"with opkernel freeze {self.path} --fetch NAME -o graph.pb, and take graph.pb"
            )
        raise InvalidArgumentError(
            f"{self.path} has no signature {DEFAULT_SIGNATURE!r}: name one of its signatures: {known}"
        )

    def _of_graph(self, options: Mapping[str, Any]) -> MappedModel:
        if self.signature is not None or self.tags is not None:
            raise InvalidArgumentError(
                f"{self.path} is a graph, which has neither signatures nor tags"
            )
        graph = load_graph(self.path)
        outputs = [one.name for one in graph_outputs(graph)]
        if not outputs:
            raise InvalidArgumentError(f"The graph {self.path} has no outputs")
        tensors = [t for t in split_by_need(graph)[0] if t.op.type != "PlaceholderWithDefault"]
        if any(t.op.type in ARG_OPS for t in tensors):
            raise UnimplementedError(f"{self.path} is the body of a function, which is not mapped")
        inputs = {t.op.name: _plain(t.op.name, TensorSpec(t.shape, t.dtype)) for t in tensors}
        session = Session(graph, permissions=self.permissions, jit=self.jit, **options)
        step = session.make_callable(outputs, [t.name for t in tensors])

        def run(batch: Mapping[str, Any]) -> dict[str, Any]:
            values = step(*[batch[name] for name in inputs])
            return dict(zip(outputs, values, strict=True))

        return MappedModel(inputs, {*inputs}, run, session.close)


class MappedModel(closing[Any]):
    """A model that is called with batches.

    Attributes:
        inputs: what it takes, by name.
        required: the names of the inputs that have no value of their own.
        run: computes the outputs of a batch, by name.
    """

    def __init__(
        self,
        inputs: Mapping[str, TensorSpec],
        required: set[str],
        run: Callable[[Mapping[str, Any]], dict[str, Any]],
        close: Callable[[], None],
    ) -> None:
        super().__init__(self)
        self.inputs = dict(inputs)
        self.required = required
        self.run = run
        self.close = close

    def named(self, values: Any) -> dict[str, Array]:
        """A mapping of names to arrays, by the names of its inputs.

        Raises:
            InvalidArgumentError: it is no such mapping, or an input is missing or unknown.
        """
        if not isinstance(values, Mapping):
            raise InvalidArgumentError(
                f"Expected a mapping of names to arrays, got {type(values).__name__}"
            )
        known = self.inputs
        found = {
            name if name in known else str(name).removesuffix(":0"): v for name, v in values.items()
        }
        for name in found:
            if name not in known:
                raise InvalidArgumentError(
                    f"The model has no input {name!r}{did_you_mean(name, known)}; it takes {_listed(known)}"
                )
        missing = [name for name in known if name in self.required and name not in found]
        if missing:
            raise InvalidArgumentError(
                f"The data has no {_listed(missing)}; the model takes {_listed(known)}"
            )
        return {name: _array(name, value) for name, value in found.items()}

    def fitted(self, values: Mapping[str, Any]) -> dict[str, Array]:
        """Arrays of the names and types that it takes.

        Raises:
            InvalidArgumentError: as `named` does, or an array has another type or shape.
        """
        named = self.named(values)
        return {name: _fitted(name, array, self.inputs[name]) for name, array in named.items()}


def _plain(name: str, spec: Any) -> TensorSpec:
    """The spec of an input whose first axis may count rows."""
    if not isinstance(spec, TensorSpec):
        raise UnimplementedError(f"Input {name!r} has several parts; a data set has one array each")
    if _is_scalar(spec):
        raise InvalidArgumentError(
            f"Input {name!r} is a scalar; a data set has a row for each call"
        )
    return spec


def _is_scalar(spec: Any) -> bool:
    return isinstance(spec, TensorSpec) and spec.shape.rank == 0


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names)) or "no inputs"


def _array(name: str, value: Any) -> Array:
    try:
        array = np.asarray(value)
        if array.dtype.kind in "SU" and not isinstance(value, np.ndarray):
            array = np.asarray(value, object)  # which keeps the zero bytes that end strings
    except ValueError as error:
        raise InvalidArgumentError(f"Input {name!r} is no array: {error}") from error
    if not array.ndim:
        raise InvalidArgumentError(f"Input {name!r} is a scalar; its first axis counts the rows")
    return array


def _fitted(name: str, array: Array, spec: TensorSpec) -> Array:
    wanted = spec.dtype.base
    if wanted is DataType.DT_STRING:
        array = _strings(name, array)
    elif array.dtype != wanted.numpy_dtype:
        array = _converted(name, array, wanted)
    if spec.shape.rank and not _fits(array.shape, [None, *spec.shape.as_list()[1:]]):
        raise InvalidArgumentError(
            f"Input {name!r} has shape {TensorShape(array.shape)}, and the model takes {spec.shape}"
        )
    return array


def _fits(shape: tuple[int, ...], wanted: list[int | None]) -> bool:
    return len(shape) == len(wanted) and all(
        size is None or size == one for one, size in zip(shape, wanted, strict=True)
    )


def _strings(name: str, array: Array) -> Array:
    if array.dtype.kind not in "SUO":
        raise InvalidArgumentError(f"Input {name!r} has dtype {array.dtype}, and takes strings")
    strings = np.empty(array.shape, object)
    for index, value in np.ndenumerate(array):
        if not isinstance(value, str | bytes):
            raise InvalidArgumentError(
                f"Input {name!r} takes strings, and has {type(value).__name__} among its values"
            )
        strings[index] = value.encode() if isinstance(value, str) else bytes(value)
    return strings


def _converted(name: str, array: Array, wanted: DataType) -> Array:
    """The values as another type of the same kind, where no integer changes."""
    dtype = wanted.numpy_dtype
    if array.dtype.kind == "V" and dtype.isbuiltin != 1 and array.itemsize == dtype.itemsize:
        return array.view(dtype)  # as .npy files hold types that NumPy lacks
    if array.dtype.kind in "biufc" and np.can_cast(array.dtype, dtype, "same_kind"):
        with np.errstate(all="ignore"):
            converted = array.astype(dtype)
        if array.dtype.kind not in "iu" or not wanted.is_integer or (converted == array).all():
            return converted
    raise InvalidArgumentError(
        f"Input {name!r} has dtype {array.dtype}, and the model takes {wanted.tf_name}"
    )
