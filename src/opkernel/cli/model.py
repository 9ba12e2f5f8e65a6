"""MODEL: what a command works on, a graph in a file or a MetaGraph of a SavedModel."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from opkernel.cli.files import InputFile
from opkernel.cli.limits import progress
from opkernel.cli.output import WrongUse, echo, one_line
from opkernel.device.permissions import NO_PERMISSIONS, Permissions
from opkernel.errors import InvalidArgumentError, OpError
from opkernel.graph import Graph, load_graph, load_graph_def
from opkernel.graph.io.graph_files import begins_with_node
from opkernel.interrupts import contextmanager
from opkernel.proto import GraphDebugInfo, GraphDef, MetaGraphDef

if TYPE_CHECKING:
    from opkernel.graph import FileKind
    from opkernel.interop.saved_model_files import SavedModelFiles
    from opkernel.interop.session_model import SessionModel

_SAVED_MODEL_NAMES = ("saved_model.pb", "saved_model.pbtxt")
_DEBUG_INFO = ("debug", "saved_model_debug_info.pb")


class Model:
    """MODEL of a command.

    Attributes:
        file: the file or directory, or standard input.
        tag_set: the tags that choose among MetaGraphs, as they were given.
        signature_name: the signature, as it was given.
        permissions: what its graphs may do besides reading their own variables and assets.
    """

    def __init__(
        self,
        file: InputFile,
        tag_set: str | None = None,
        signature_name: str | None = None,
        permissions: Permissions = NO_PERMISSIONS,
    ) -> None:
        self.file = file
        self.tag_set = tag_set
        self.signature_name = signature_name
        self.permissions = permissions

    def __str__(self) -> str:
        return str(self.file)

    @property
    def name(self) -> str:
        """The last part of its name."""
        return self.file.name or str(self.file)

    @cached_property
    def kind(self) -> FileKind:
        """What the file is."""
        from opkernel.graph.io.file_kind import file_kind  # the kind of plain graphs is not asked

        return file_kind(self.file)

    @cached_property
    def is_saved_model(self) -> bool:
        """Whether it is a SavedModel, an archive that may hold one, or a MetaGraph.

        Raises:
            WrongUse: it is not, and a MetaGraph or signature was asked for.
        """
        path = os.fspath(self.file)
        is_saved = (os.path.isdir(path) or not begins_with_node(path)) and self.kind.may_be_saved
        for option, value in (("tag_set", self.tag_set), ("signature_def", self.signature_name)):
            if value is not None and not is_saved:
                raise WrongUse(
                    f"--{option} {value}: it chooses a part of a SavedModel, and {self} is {self.kind}"
                )
        return is_saved

    @cached_property
    def files(self) -> SavedModelFiles | None:
        """The files of the SavedModel; None for a MetaGraph file.

        Raises:
            OpError: as `opkernel.load` does.
        """
        from opkernel.interop.loading import saved_model_files  # plain graphs need no loader

        self._check_name()
        with self.named():
            return saved_model_files(self.file)

    @cached_property
    def meta_graph(self) -> MetaGraphDef:
        """The MetaGraph that is asked for.

        Raises:
            NotFoundError: there is none with these tags.
            InvalidArgumentError: there are several, and no tags.
        """
        from opkernel.interop.loading import load_meta_graph

        with self.named():
            if self.files is not None:
                return self._chosen(self.files)
            found = load_meta_graph(os.fspath(self.file))
        if self.tags is not None and {*self.tags} != {*found.meta_info_def.tags}:
            raise WrongUse(f"--tag_set {self.tag_set}: {self} has one MetaGraph, with other tags")
        return found

    def _chosen(self, files: SavedModelFiles) -> MetaGraphDef:
        try:
            return files.meta_graph(self.tags)
        except InvalidArgumentError as error:
            if self.tags is None:
                error.message += " (--tag_set A,B)"
            raise

    @property
    def tags(self) -> list[str] | None:
        """The tags that are asked for."""
        if self.tag_set is None:
            return None
        return [tag.strip() for tag in self.tag_set.split(",") if tag.strip()]

    def graph_def(self) -> GraphDef:
        """The GraphDef, unchecked."""
        return self.meta_graph.graph_def if self.is_saved_model else load_graph_def(self.file)

    def graph(self) -> Graph:
        """The graph, with ops that are not registered and names that TensorFlow keeps for itself.

        Raises:
            OpError: as `load_graph` does.
        """
        if not self.is_saved_model:
            return load_graph(self.file, allow_unregistered=True, allow_internal_names=True)
        from opkernel.interop.session_model import graph_of

        return graph_of(self.meta_graph)

    def debug_info(self) -> GraphDebugInfo:
        """Where the nodes were defined, if the model tells."""
        files = self.files if self.is_saved_model else None
        path = "" if files is None else os.path.join(files.directory, *_DEBUG_INFO)
        if not os.path.isfile(path):
            return self.graph_def().debug_info
        from opkernel.graph.io.message_files import read_file
        from opkernel.proto import DecodeError

        try:
            return GraphDebugInfo.FromString(read_file(path))
        except DecodeError:
            return GraphDebugInfo()

    def session_model(self, checkpoint: str | None = None, **session_options: Any) -> SessionModel:
        """The model with a session, which restores and initialises it when it is first used.

        Args:
            checkpoint: the prefix of the checkpoint to restore, in place of the model's own.
            session_options: what the session gets.

        Raises:
            OpError: as `opkernel.load_as_session` does.
        """
        from opkernel.interop.loading import as_session

        with self.named(), _warnings_told(), progress(f"Loading {self.name}"):
            if self.files is not None:
                self._chosen(self.files)
            model = as_session(self.file, self.files, self.tags, self.permissions, checkpoint)
        model.session_options.update(session_options)
        return model

    @contextmanager
    def named(self) -> Iterator[None]:
        """Errors in the block call the file as the command line does."""
        try:
            yield
        except OpError as error:
            error.message = error.message.replace(os.fspath(self.file), str(self.file))
            raise

    def _check_name(self) -> None:
        """Raise InvalidArgumentError where the file of a SavedModel has another name than TensorFlow gives it."""
        path = os.fspath(self.file)
        is_alone = os.path.basename(path) not in _SAVED_MODEL_NAMES and not os.path.isdir(path)
        if is_alone and str(self.kind).startswith("the saved_model."):
            name = str(self.kind).split()[1]
            raise InvalidArgumentError(
                f"{self} is {self.kind} under another name: call it {name}, and put it beside its "
                f"folders variables and assets"
            )


def load_model(model: Model) -> Graph:
    """The graph of a model, as `Model.graph`, while its loading is shown."""
    with progress(f"Loading {model.name}"):
        return model.graph()


@contextmanager
def _warnings_told() -> Iterator[None]:
    """Print the warnings of the block as messages of the command."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for one in caught:
        echo("Warning: ", one_line(one.message), err=True)
