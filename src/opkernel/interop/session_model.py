"""SessionModel: a MetaGraph with a session that has its values: how TF1 serves a model.

At the first step the checkpoint is restored and the initialisation runs, as the loader of TensorFlow does
when it loads: the restore operation of the Saver is fed the name of the checkpoint, and every operation of the
initialisation the paths of the assets.

Source: TensorFlow cc/saved_model/loader.cc, loader_util.cc, python/training/saver.py.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from opkernel.device.permissions import NO_PERMISSIONS, Permissions
from opkernel.errors import DataLossError, InvalidArgumentError, NotFoundError, UnimplementedError
from opkernel.graph import Graph, Operation, Tensor, TensorSpec
from opkernel.graph.io.importer import GraphImporter, ImportOptions
from opkernel.graph.io.signature_names import init_op_names, signature_names
from opkernel.graph.tracing.nested_structure import flatten, map_structure
from opkernel.interop.session_variable import SessionVariable, session_variables
from opkernel.interop.signature import Signature, SignatureMap, model_html
from opkernel.interop.structured_value import (
    CompositeSpec,
    decoded,
    sparse_spec,
)
from opkernel.interrupts import Closing
from opkernel.opdef import UnregisteredOpError
from opkernel.proto import MetaGraphDef, SignatureDef, TensorInfo
from opkernel.runtime import Session
from opkernel.types import DataType, PartialTensorShape, tensor_from_proto

_Tensors = TensorInfo | tuple[TensorInfo, ...]
"""The tensor of an input or output, or those that it has as parts."""


def _signature(name: str, definition: SignatureDef, owner: SessionModel) -> Signature:
    """The signature that a SignatureDef describes.

    The session is asked for at the first call.
    """
    inputs = {key: _tensors(info) for key, info in sorted(definition.inputs.items())}
    outputs = {key: _tensors(info) for key, info in sorted(definition.outputs.items())}

    @cache
    def step() -> Callable[..., Any]:
        for one in flatten([inputs, outputs]):
            owner.element(one.name, f"signature {name!r}")
        fetches = map_structure(lambda one: one.name, outputs)
        return owner.session.make_callable(fetches, [one.name for one in flatten(inputs)])

    names = [*inputs]
    is_plain = not any(isinstance(tensors, tuple) for tensors in inputs.values())

    composites = {
        key: spec
        for key, info in definition.outputs.items()
        if (spec := _composite(info)) is not None
    }

    def run(values: Mapping[str, Any]) -> dict[str, Any]:
        if is_plain:
            given = [values[name] for name in names]
        else:
            given = [
                part
                for key, tensors in inputs.items()
                for part in _parts(key, tensors, _composite(definition.inputs[key]), values[key])
            ]
        found: dict[str, Any] = step()(*given)  # in the form of the fetches
        for key, spec in composites.items():
            found[key] = spec.value(found[key])
        return found

    return Signature(
        name,
        map_structure(_spec, inputs),
        map_structure(_spec, outputs),
        run,
        method_name=definition.method_name,
        defaults={key: tensor_from_proto(value) for key, value in definition.defaults.items()},
        keywords={key.removesuffix(":0"): key for key in inputs if key.endswith(":0")},
    )


def _tensors(info: TensorInfo) -> _Tensors:
    encoding = info.WhichOneof("encoding")
    if encoding == "composite_tensor":
        return tuple(info.composite_tensor.components)
    if encoding != "coo_sparse":
        return info
    sparse, rank = info.coo_sparse, _shape(info).rank
    shapes = (
        PartialTensorShape([None, rank]),
        PartialTensorShape([None]),
        PartialTensorShape([rank]),
    )
    names = sparse.indices_tensor_name, sparse.values_tensor_name, sparse.dense_shape_tensor_name
    types = DataType.DT_INT64, info.dtype, DataType.DT_INT64
    return tuple(
        TensorInfo(name=name, dtype=dtype, tensor_shape=shape.to_proto())
        for name, dtype, shape in zip(names, types, shapes, strict=True)
    )


def _composite(info: TensorInfo) -> CompositeSpec | None:
    """The spec of a sparse, ragged or other value of several tensors; None where it is unknown."""
    encoding = info.WhichOneof("encoding")
    if encoding == "coo_sparse":
        return sparse_spec(_shape(info), DataType(info.dtype))
    if encoding != "composite_tensor":
        return None
    composite = info.composite_tensor
    try:
        spec = CompositeSpec.of(composite.type_spec, decoded(composite.type_spec.type_state))
    except (UnimplementedError, DataLossError):
        return None
    return spec if len(spec.components) == len(composite.components) else None


def _spec(info: TensorInfo) -> TensorSpec:
    return TensorSpec(_shape(info), DataType(info.dtype), info.name.partition(":")[0])


def _shape(info: TensorInfo) -> PartialTensorShape:
    return PartialTensorShape.from_proto(info.tensor_shape)


def _parts(key: str, tensors: _Tensors, spec: CompositeSpec | None, value: Any) -> Sequence[Any]:
    """The values of the tensors of an input.

    Raises:
        InvalidArgumentError: the input has several parts, and the value has not as many.
    """
    if not isinstance(tensors, tuple):
        return (value,)
    if spec is not None:
        value = spec.parts(value)
    if not isinstance(value, list | tuple) or len(value) != len(tensors):
        names = ", ".join([one.name for one in tensors])
        raise InvalidArgumentError(
            f"Input {key!r} has {len(tensors)} parts ({names}): give a tuple of their values"
        )
    return value


class SessionModel(Closing):
    """A graph that was loaded with the values of its variables, and a session that runs it.

        with opkernel.load_as_session("model") as model:
            y = model.signatures["serving_default"](x=x)["y"]
            z = model.run("z:0", {"x:0": x})

    Attributes:
        path: Where it came from.
        meta_graph: The message.
        graph: The graph; nodes with ops that are not registered are in it, and cannot run.
        tags: The tags of the MetaGraph.
        assets: The paths of the files that the graph reads, by the names of the tensors that give them.
        signatures: The computations with named inputs and outputs.
        permissions: What the graph may do: to read its own variables and assets, and what the caller
            allowed.
        session_options: What else its session gets, such as `providers`; for the first use of it.
    """

    def __init__(
        self,
        path: str,
        meta_graph: MetaGraphDef,
        *,
        checkpoint: str | None = None,
        assets: Mapping[str, str] | None = None,
        permissions: Permissions = NO_PERMISSIONS,
        owner: object = None,
        jit: str = "",
    ) -> None:
        self.path = path
        self.meta_graph = meta_graph
        self.tags = sorted(meta_graph.meta_info_def.tags)
        self.assets = dict(assets or {})
        self.permissions = permissions
        self.graph = graph_of(meta_graph)
        self.signatures = SignatureMap(
            {
                name: _signature(name, meta_graph.signature_def[name], self)
                for name in signature_names(meta_graph)
            }
        )
        self.session_options: dict[str, Any] = {"jit": jit}
        self._checkpoint = checkpoint
        self._owner = owner  # of the files, which go with it
        self._session: Session | None = None
        self._lock = threading.RLock()

    @property
    def session(self) -> Session:
        """The session; the first time, the checkpoint is restored and the initialisation runs.

        Raises:
            NotFoundError: the checkpoint or an asset is missing.
            DataLossError: the checkpoint is damaged.
        """
        if self._session is None:
            with self._lock:
                if self._session is None:
                    self._session = self._initialized()
        return self._session

    def run(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """Run one step of the session, as `Session.run` does."""
        return self.session.run(fetches, feed_dict)

    @property
    def variables(self) -> list[SessionVariable]:
        """The variables, in the order of the graph's collection."""
        return session_variables(self.graph, self.meta_graph, lambda: self.session)

    @property
    def trainable_variables(self) -> list[SessionVariable]:
        """The variables that training changes."""
        return [variable for variable in self.variables if variable.trainable]

    @property
    def user_defined_metadata(self) -> dict[str, Any]:
        """What a TensorFlow.js model says about itself, such as its labels; empty for other models."""
        from opkernel.graph.io.tfjs_model import user_defined_metadata  # for these models alone

        return user_defined_metadata(self.meta_graph)

    def close(self) -> None:
        """Close the session, if it was used."""
        with self._lock:
            if self._session is not None:
                self._session.close()

    def __repr__(self) -> str:
        names = ", ".join(self.signatures) or "none"
        return f"<opkernel.SessionModel {self.path!r}, tags {self.tags}, signatures: {names}>"

    def _repr_html_(self) -> str:
        """The tables of its signatures, which notebooks show."""
        return model_html("SessionModel", self.path, self.tags, self.signatures)

    def _initialized(self) -> Session:
        """A session with the values of the checkpoint, after the initialisation."""
        session = Session(self.graph, permissions=self.permissions, **self.session_options)
        try:
            if self._checkpoint is not None:
                self._restore(session, self._checkpoint)
            for name in init_op_names(self.meta_graph):
                self.element(name, "the initialisation")
                session.run(name, self._asset_feeds())
        except BaseException:
            session.close()
            raise
        return session

    def _restore(self, session: Session, checkpoint: str) -> None:
        saver = self.meta_graph.saver_def
        if not saver.restore_op_name:
            return
        for name in (saver.restore_op_name, saver.filename_tensor_name):
            self.element(name, "the Saver")
        feeds = {**self._asset_feeds(), saver.filename_tensor_name: checkpoint.encode()}
        session.run(saver.restore_op_name, feeds)

    def _asset_feeds(self) -> dict[str, bytes]:
        for name in self.assets:
            self.element(name, "an asset")
        return {name: path.encode() for name, path in self.assets.items()}

    def element(self, name: str, whose: str) -> Tensor | Operation:
        """What a part of the MetaGraph names in the graph.

        Raises:
            DataLossError: the graph has no such tensor or operation.
        NotFoundError: it is of an op that is not registered.
        """
        try:
            return self.graph.as_graph_element(name)
        except UnregisteredOpError:
            raise
        except (NotFoundError, InvalidArgumentError, ValueError) as error:
            raise DataLossError(
                f"{self.path} is damaged: {whose} needs {name!r}, which the graph lacks"
            ) from error


def graph_of(meta_graph: MetaGraphDef) -> Graph:
    """The graph of a MetaGraph, with ops that are not registered and names that TensorFlow keeps for itself.

    Raises:
        InvalidArgumentError: the graph breaks a rule.
    """
    graph = Graph()
    options = ImportOptions(
        allow_unregistered=True, allow_internal_names=True, fill_empty_attrs=True
    )
    GraphImporter(graph, meta_graph.graph_def, options).prepare().commit()
    return graph
