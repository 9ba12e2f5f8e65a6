"""SessionModel: a MetaGraph with a session that has its values: how TF1 serves a model.

At the first step the checkpoint is restored and the initialisation runs, as the loader of TensorFlow does
when it loads: the restore operation of the Saver is fed the name of the checkpoint, and every operation of the
initialisation the paths of the assets.

Source: TensorFlow cc/saved_model/loader.cc, loader_util.cc, python/training/saver.py.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Self

from opkernel.device.permissions import NO_PERMISSIONS, Permissions
from opkernel.errors import DataLossError, InvalidArgumentError, NotFoundError
from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.io.importer import GraphImporter, ImportOptions
from opkernel.interop.session_signature import session_signature
from opkernel.interop.session_variable import SessionVariable, session_variables
from opkernel.interop.signature import SignatureMap
from opkernel.opdef import UnregisteredOpError
from opkernel.proto import MetaGraphDef
from opkernel.runtime import Session

_INIT_OP_SIGNATURE = "__saved_model_init_op"
_NO_SIGNATURES = (_INIT_OP_SIGNATURE, "__saved_model_train_op")
_INIT_OP_COLLECTIONS = ("saved_model_main_op", "legacy_init_op")


class SessionModel:
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
    ) -> None:
        self.path = path
        self.meta_graph = meta_graph
        self.tags = sorted(meta_graph.meta_info_def.tags)
        self.assets = dict(assets or {})
        self.permissions = permissions
        self.graph = graph_of(meta_graph)
        self.signatures = SignatureMap(
            {
                name: session_signature(name, definition, self)
                for name, definition in meta_graph.signature_def.items()
                if name not in _NO_SIGNATURES
            }
        )
        self.session_options: dict[str, Any] = {}
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

    def close(self) -> None:
        """Close the session, if it was used."""
        with self._lock:
            if self._session is not None:
                self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        names = ", ".join(self.signatures) or "none"
        return f"<opkernel.SessionModel {self.path!r}, tags {self.tags}, signatures: {names}>"

    def _initialized(self) -> Session:
        """A session with the values of the checkpoint, after the initialisation."""
        session = Session(self.graph, permissions=self.permissions, **self.session_options)
        try:
            if self._checkpoint is not None:
                self._restore(session, self._checkpoint)
            for name in self._init_ops():
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

    def _init_ops(self) -> list[str]:
        """The operations that initialise what no checkpoint holds."""
        signature = self.meta_graph.signature_def
        if _INIT_OP_SIGNATURE in signature:
            return [info.name for info in signature[_INIT_OP_SIGNATURE].outputs.values()]
        for collection in _INIT_OP_COLLECTIONS:
            if collection in self.meta_graph.collection_def:
                return [*self.meta_graph.collection_def[collection].node_list.value]
        return []

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
    importer = GraphImporter(graph, meta_graph.graph_def, options)
    importer.prepare()
    importer.commit()
    return graph
