"""load: a model from a file or directory, whichever way it was saved."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from opkernel.checkpoint.loading import checkpoint_exists
from opkernel.device.permissions import NO_PERMISSIONS, Permissions
from opkernel.errors import DataLossError, InvalidArgumentError, UnimplementedError
from opkernel.graph.io.file_kind import FileKind, file_kind
from opkernel.graph.io.message_files import parse_text, read_file
from opkernel.graph.io.next_step import next_step
from opkernel.graph.io.versions import check_versions
from opkernel.interop.saved_model.saved_model_files import SavedModelFiles
from opkernel.proto import DecodeError, MetaGraphDef

if TYPE_CHECKING:
    from opkernel.interop.loaded_model import LoadedModel
    from opkernel.interop.session_model import SessionModel

Tags = Iterable[str] | str | None

_ARCHIVES = (FileKind.ZIP, FileKind.GZIP, FileKind.TAR)
_SAVED_MODEL_FILES = (FileKind.SAVED_MODEL_FILE, FileKind.SAVED_MODEL_TEXT)
_CHUNKED = ".cpb"
_META_GRAPHS = (FileKind.META_GRAPH, FileKind.META_GRAPH_TEXT)


def load(
    path: str | os.PathLike[str],
    *,
    tags: Tags = None,
    permissions: Permissions | None = None,
    jit: str = "",
) -> LoadedModel | Any:  # Any: a SessionModel, which nobody calls and asks for layers
    """Load a model.

    A SavedModel of TF2 becomes a LoadedModel, with the objects, functions and variables that were
    saved. One of TF1, and a MetaGraph file (`model.ckpt.meta`), becomes a SessionModel. Both have
    `signatures`, `variables` and `trainable_variables`; both read the values when they are first used.

    Args:
        path: The directory of a SavedModel or the file in it, an archive of such a directory
            (`.tar.gz`, `.tar`, `.zip`), or a MetaGraph file beside its checkpoint.
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
    files = _opened(path)
    if files is not None:
        meta_graph = _chosen(files, tags)
        if meta_graph.object_graph_def.nodes:
            from opkernel.interop.loaded_model import LoadedModel  # which SessionModels do without

            return LoadedModel(files, meta_graph, permissions or NO_PERMISSIONS, jit)
    return _with_engine(as_session(path, files, tags, permissions), jit)


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
    return _with_engine(as_session(path, _opened(path), tags, permissions), jit)


def _with_engine(model: SessionModel, jit: str) -> SessionModel:
    """A model whose session has an engine."""
    model.session_options["jit"] = jit
    return model


def saved_model_files(path: str | os.PathLike[str]) -> SavedModelFiles | None:
    """The files of a SavedModel, of its archive or its directory; None for files of another kind.

    Raises:
        NotFoundError, DataLossError, InvalidArgumentError: as `load` does.
    """
    return _opened(path)


def _opened(path: str | os.PathLike[str]) -> SavedModelFiles | None:
    """The SavedModel that lies at a path; None for a MetaGraph file."""
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
    return meta_graph


def as_session(
    path: str | os.PathLike[str],
    files: SavedModelFiles | None,
    tags: Tags,
    permissions: Permissions | None,
    checkpoint: str | None = None,
) -> SessionModel:
    """As `load_as_session`, of files that were opened.

    Args:
        path: the path.
        files: what `saved_model_files` gave for it.
        tags: as for `load`.
        permissions: as for `load`.
        checkpoint: the prefix of the checkpoint to restore, in place of the model's own.
    """
    from opkernel.interop.session_model import SessionModel  # which LoadedModels do without

    permissions = permissions or NO_PERMISSIONS
    if checkpoint is not None:
        checkpoint = os.path.abspath(checkpoint)
        permissions = permissions.restoring(checkpoint, follows_links=True)
    if files is None:
        return _of_meta_graph_file(os.fspath(path), permissions, checkpoint)
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
    )


def _of_meta_graph_file(
    path: str, permissions: Permissions, checkpoint: str | None
) -> SessionModel:
    """The model of a MetaGraph file; its checkpoint lies beside it under the same name."""
    from opkernel.interop.session_model import SessionModel

    prefix = os.path.abspath(path.removesuffix(".meta"))
    if checkpoint is None and prefix != os.path.abspath(path) and checkpoint_exists(prefix):
        checkpoint = prefix
        permissions = permissions.restoring(prefix)
    return SessionModel(path, load_meta_graph(path), checkpoint=checkpoint, permissions=permissions)


def load_meta_graph(path: str) -> MetaGraphDef:
    """The message in a MetaGraph file.

    Raises:
        InvalidArgumentError: its text is wrong.
        DataLossError: it is damaged.
    """
    data = read_file(path)
    if file_kind(path) is FileKind.META_GRAPH_TEXT:
        return parse_text(path, data, MetaGraphDef)
    try:
        return MetaGraphDef.FromString(data)
    except DecodeError as error:
        raise DataLossError(f"{path} is damaged or truncated") from error
