"""MappedModel: a model that is called with batches of rows, whichever way it was saved."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any

from opkernel.device.permissions import NO_PERMISSIONS, Permissions
from opkernel.errors import InvalidArgumentError, NotFoundError, UnimplementedError
from opkernel.graph import TensorSpec, file_kind, load_graph
from opkernel.graph.core.structural_ops import ARG_OPS
from opkernel.graph.edit.interface import graph_outputs, split_by_need
from opkernel.graph.io.graph_files import begins_with_node
from opkernel.interop import Signature, load_as_session
from opkernel.records import dataclass
from opkernel.runtime import Session, SessionConfig

_DEFAULT_SIGNATURE = "serving_default"
_ONE_THREAD = SessionConfig(intra_op_parallelism_threads=1, inter_op_parallelism_threads=-1)


@dataclass(frozen=True)
class ModelRequest:
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
        if _DEFAULT_SIGNATURE in signatures:
            return signatures[_DEFAULT_SIGNATURE]
        if len(signatures) != 1:
            raise InvalidArgumentError(
                f"{self.path} has no signature {_DEFAULT_SIGNATURE!r}: name one of its signatures: {known}"
            )
        return next(iter(signatures.values()))

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
