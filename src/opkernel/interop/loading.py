"""load: a model from a file or directory, whichever way it was saved."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any

from opkernel.checkpoint.loading import checkpoint_exists
from opkernel.device.permissions import NO_PERMISSIONS, Permissions
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.graph.io.file_kind import FileKind, file_kind
from opkernel.graph.io.message_files import parse_text, read_file, read_message
from opkernel.graph.io.versions import check_versions
from opkernel.interop.saved_model_files import SavedModelFiles
from opkernel.logs import logger
from opkernel.opdef import global_op_registry
from opkernel.proto import MetaGraphDef

if TYPE_CHECKING:
    from opkernel.interop.loaded_model import LoadedModel
    from opkernel.interop.session_model import SessionModel

Tags = Iterable[str] | str | None

_ARCHIVES = (FileKind.ZIP, FileKind.GZIP, FileKind.TAR)
_SAVED_MODEL_FILES = (FileKind.SAVED_MODEL_FILE, FileKind.SAVED_MODEL_TEXT)
_CHUNKED = ".cpb"
_META_GRAPHS = (FileKind.META_GRAPH, FileKind.META_GRAPH_TEXT, FileKind.TFJS_GRAPH)


def load(
    path: str | os.PathLike[str],
    *,
    tags: Tags = None,
    permissions: Permissions | None = None,
    jit: str = "",
) -> LoadedModel | Any:  # Any: a SessionModel, which nobody calls and asks for layers
    """Load a model.

    A SavedModel of TF2 becomes a LoadedModel, with the objects, functions and variables that were saved. One of TF1,
    a MetaGraph file (`model.ckpt.meta`), and a TensorFlow.js graph model become a SessionModel. Both have
    `signatures`, `variables` and `trainable_variables`; both read the values when they are first used.

    Args:
        path: The directory of a SavedModel or the file in it, a MetaGraph file beside its checkpoint, or a
            TensorFlow.js graph model: its folder, `model.json`, or `tensorflowjs_model.pb`. Or an archive of the
            directory or folder (`.tar.gz`, `.tar`, `.zip`).
        tags: The tags of the MetaGraph to take, where there are several; see
            `SavedModelFiles.meta_graph`.
        permissions: What the graphs of the model may read and write besides their own variables and
            assets.
        jit: The engine that compiles parts of the model's functions, as for a Session.

    Raises:
        NotFoundError: there is no such file, or no MetaGraph with these tags.
        InvalidArgumentError: the file is something else, or its graph is not for this version of TensorFlow.
        DataLossError: the file is damaged.
        UnimplementedError: a newer TensorFlow wrote it, or it is in chunks (`.cpb`).
    """
    files = saved_model_files(path)
    if files is not None:
        meta_graph = _chosen(files, tags)
        if meta_graph.object_graph_def.nodes:
            from opkernel.interop.loaded_model import LoadedModel  # which SessionModels do without

            return LoadedModel(files, meta_graph, permissions or NO_PERMISSIONS, jit)
    return as_session(path, files, tags, permissions, jit=jit)


def load_as_session(
    path: str | os.PathLike[str],
    *,
    tags: Tags = None,
    permissions: Permissions | None = None,
    jit: str = "",
) -> SessionModel:
    """Load a model as a graph with a session, as TF1 and TensorFlow Serving do it.

    Args and errors are those of `load`.
    """
    return as_session(path, saved_model_files(path), tags, permissions, jit=jit)


def saved_model_files(path: str | os.PathLike[str]) -> SavedModelFiles | None:
    """The files of the SavedModel at a path, of its archive or its directory; None for a MetaGraph file.

    Raises:
        NotFoundError, DataLossError, InvalidArgumentError, UnimplementedError: as `load` does.
    """
    kind, name = file_kind(path), os.fspath(path)
    if kind is FileKind.SAVED_MODEL:
        return SavedModelFiles(name)
    if kind in _SAVED_MODEL_FILES:
        return SavedModelFiles(os.path.dirname(os.path.abspath(name)))
    if kind in _ARCHIVES:
        from opkernel.interop.archives import UnpackedArchive  # slow to import: for archives alone

        archive = UnpackedArchive(name)
        return SavedModelFiles(archive.model_directory, archive)
    if kind in _META_GRAPHS:
        return None
    if name.endswith(_CHUNKED) or os.path.isfile(os.path.join(name, f"saved_model{_CHUNKED}")):
        raise UnimplementedError(
            f"{name} is a SavedModel in chunks ({_CHUNKED}), which is not read; save the model again "
            f"without experimental_image_format"
        )
    from opkernel.graph.io.next_step import next_step  # for errors alone

    raise InvalidArgumentError(
        f"{path} is {kind}, and neither a SavedModel nor a MetaGraph{next_step(path, kind)}"
    )


def _chosen(files: SavedModelFiles, tags: Tags) -> MetaGraphDef:
    """The MetaGraph of the tags, whose version can be read."""
    meta_graph = files.meta_graph(tags)
    try:
        check_versions(meta_graph.graph_def.versions)
    except InvalidArgumentError as error:
        error.add_context(f"In {files.path}")
        raise
    _warn_of_missing_extras(files.path, meta_graph)
    return meta_graph


def _warn_of_missing_extras(path: str, meta_graph: MetaGraphDef) -> None:
    """Warn where steps of a model need libraries that are not installed."""
    library = meta_graph.graph_def.library.function
    nodes = chain(meta_graph.graph_def.node, *[function.node_def for function in library])
    wanting = [node for node in nodes if global_op_registry().traits(node.op).extra]
    if not wanting:
        return
    from opkernel.kernel.missing_extras import missing_extras  # most models need none

    for one in missing_extras(wanting):
        if one.is_certain:
            logger("opkernel.libraries").warning("%s %s", path, one)


def as_session(
    path: str | os.PathLike[str],
    files: SavedModelFiles | None,
    tags: Tags,
    permissions: Permissions | None,
    checkpoint: str | None = None,
    *,
    jit: str = "",
) -> SessionModel:
    """As `load_as_session`, of files that were opened.

    Args:
        path: the path.
        files: what `saved_model_files` gave for it.
        tags: as for `load`.
        permissions: as for `load`.
        checkpoint: the prefix of the checkpoint to restore, in place of the model's own.
        jit: as for `load`.
    """
    from opkernel.interop.session_model import SessionModel  # which LoadedModels do without

    permissions = permissions or NO_PERMISSIONS
    if checkpoint is not None:
        checkpoint = os.path.abspath(checkpoint)
        permissions = permissions.restoring(checkpoint, follows_links=True)
    if files is None:
        return _of_meta_graph_file(os.fspath(path), permissions, checkpoint, jit)
    if checkpoint is None:
        files.check_fingerprint()
    meta_graph = _chosen(files, tags)
    return SessionModel(
        files.directory,
        meta_graph,
        checkpoint=checkpoint or files.variables_prefix,
        assets=files.assets(meta_graph),
        permissions=permissions.reading_own(files.directory),
        owner=files,
        jit=jit,
    )


def _of_meta_graph_file(
    path: str, permissions: Permissions, checkpoint: str | None, jit: str
) -> SessionModel:
    """The model of a MetaGraph file; its checkpoint lies beside it under the same name."""
    from opkernel.interop.session_model import SessionModel

    meta_graph = load_meta_graph(path)
    _warn_of_missing_extras(path, meta_graph)
    prefix = os.path.abspath(path.removesuffix(".meta"))
    if checkpoint is None and prefix != os.path.abspath(path) and checkpoint_exists(prefix):
        checkpoint = prefix
        permissions = permissions.restoring(prefix)
    return SessionModel(path, meta_graph, checkpoint=checkpoint, permissions=permissions, jit=jit)


def load_meta_graph(path: str) -> MetaGraphDef:
    """The message in a MetaGraph file, or that of a TensorFlow.js graph model.

    Raises:
        InvalidArgumentError: its text is wrong, or a TensorFlow.js model names a file outside of its folder.
        DataLossError: it is damaged.
    """
    kind = file_kind(path)
    if kind is FileKind.TFJS_GRAPH:
        from opkernel.graph.io.tfjs_model import load_tfjs_model  # for these models alone

        return load_tfjs_model(path)
    if kind is FileKind.META_GRAPH_TEXT:
        return parse_text(path, read_file(path), MetaGraphDef)
    return read_message(path, MetaGraphDef)
