"""SavedModelFiles: the directory of a SavedModel, and the MetaGraphs in its file.

    saved_model.pb (or .pbtxt)   the MetaGraphs
    variables/variables.*        a checkpoint
    assets/                      files that the graphs read
    fingerprint.pb               what the save was, in numbers

Source: TensorFlow cc/saved_model/reader.cc, python/saved_model/loader_impl.py, constants.py.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from opkernel.errors import (
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
    UnimplementedError,
)
from opkernel.graph.io.message_files import parse_text, read_file
from opkernel.opdef.core.fingerprint import fingerprint64
from opkernel.proto import AssetFileDef, DecodeError, FingerprintDef, MetaGraphDef, SavedModel

_SCHEMA_VERSION = 1
_ASSETS = "saved_model_assets"
_DEFAULT_TAGS = frozenset({"serve"})


class SavedModelFiles:
    """A SavedModel on disk.

    Args:
        directory: Where it lies.
        owner: What the files go with, where they were unpacked.

    Attributes:
        directory: Where it lies.
        meta_graphs: Its MetaGraphs.

    Raises:
        NotFoundError: the directory holds no SavedModel.
        DataLossError: the file is damaged.
        InvalidArgumentError: the text of a `saved_model.pbtxt` is wrong.
        UnimplementedError: a newer TensorFlow wrote it.
    """

    def __init__(self, directory: str | os.PathLike[str], owner: object = None) -> None:
        self._owner = owner
        self.directory = os.path.abspath(directory)
        path, saved_model = _read(self.directory)
        version = saved_model.saved_model_schema_version
        if version > _SCHEMA_VERSION:
            raise UnimplementedError(
                f"{path} has version {version} of the SavedModel format; this reader knows version "
                f"{_SCHEMA_VERSION}"
            )
        self.path = path
        self.meta_graphs: Sequence[MetaGraphDef] = saved_model.meta_graphs
        if not self.meta_graphs:
            raise DataLossError(f"{path} is damaged: it has no MetaGraph")

    @property
    def tag_sets(self) -> list[list[str]]:
        """The tags of each MetaGraph, sorted."""
        return [sorted(graph.meta_info_def.tags) for graph in self.meta_graphs]

    def meta_graph(self, tags: Iterable[str] | str | None = None) -> MetaGraphDef:
        """The MetaGraph with exactly these tags.

        Args:
            tags: The tags; a single one may be given by itself. Without them, the only MetaGraph, or
                the one whose only tag is `serve`.

        Raises:
            NotFoundError: there is no such MetaGraph.
            InvalidArgumentError: there are several.
        """
        known = ", ".join([f"{{{', '.join(one)}}}" for one in self.tag_sets])
        if tags is None:
            if len(self.meta_graphs) == 1:
                return self.meta_graphs[0]
            wanted = _DEFAULT_TAGS
        else:
            wanted = frozenset([tags] if isinstance(tags, str) else tags)
        found = [one for one in self.meta_graphs if set(one.meta_info_def.tags) == wanted]
        if len(found) == 1:
            return found[0]
        if tags is None:
            raise InvalidArgumentError(
                f"{self.directory} has several MetaGraphs: choose one by its tags, of {known}"
            )
        text = ", ".join(sorted(wanted))
        if found:
            raise InvalidArgumentError(
                f"{self.directory} has {len(found)} MetaGraphs with the tags {{{text}}}"
            )
        raise NotFoundError(
            f"{self.directory} has no MetaGraph with the tags {{{text}}}; it has {known}"
        )

    @property
    def variables_directory(self) -> str:
        """The directory of the checkpoint, which need not exist."""
        return os.path.join(self.directory, "variables")

    @property
    def assets_directory(self) -> str:
        """The directory of the assets, which need not exist."""
        return os.path.join(self.directory, "assets")

    @property
    def variables_prefix(self) -> str | None:
        """The prefix of the checkpoint; None where the model has no variables."""
        prefix = os.path.join(self.variables_directory, "variables")
        return prefix if os.path.isdir(self.variables_directory) else None

    def assets(self, meta_graph: MetaGraphDef) -> dict[str, str]:
        """The path of each asset, by the tensor that gives it to the graph.

        Raises:
            InvalidArgumentError: an asset would lie outside of the directory of the assets.
            DataLossError: the list of assets is damaged.
        """
        return {
            asset.tensor_info.name: self.asset_path(asset.filename)
            for asset in (*meta_graph.asset_file_def, *self._listed_assets(meta_graph))
        }

    def _listed_assets(self, meta_graph: MetaGraphDef) -> list[AssetFileDef]:
        """The assets that TF1 lists in a collection."""
        listed: Any = meta_graph.collection_def[_ASSETS].any_list.value
        try:
            return [AssetFileDef.FromString(one.value) for one in listed]
        except DecodeError as error:
            raise DataLossError(f"{self.path} is damaged: the list of its assets") from error

    def asset_path(self, name: str) -> str:
        """The path of an asset.

        Raises:
            InvalidArgumentError: it would lie outside of the directory of the assets.
        """
        path = os.path.normpath(os.path.join(self.assets_directory, name))
        if "\0" in path or not path.startswith(self.assets_directory + os.sep):
            raise InvalidArgumentError(
                f"{self.path}: asset {name!r} lies outside of {self.assets_directory}"
            )
        return path

    def check_fingerprint(self) -> None:
        """Warn where `variables/` is not what was saved with the graph.

        Raises:
            DataLossError: `fingerprint.pb` is damaged.
        """
        path = os.path.join(self.directory, "fingerprint.pb")
        index = os.path.join(self.variables_directory, "variables.index")
        if not os.path.isfile(path) or not os.path.isfile(index):
            return
        try:
            expected = FingerprintDef.FromString(read_file(path)).checkpoint_hash
        except DecodeError as error:
            raise DataLossError(f"{path} is damaged or truncated") from error
        if expected and fingerprint64(read_file(index)) != expected:
            warnings.warn(
                f"{index} is not the one that was saved with {self.path}: its fingerprint differs "
                f"from that in {path}",
                stacklevel=2,
            )


def _read(directory: str) -> tuple[str, SavedModel]:
    """The file of a SavedModel, and what it holds."""
    binary, text = (os.path.join(directory, f"saved_model.{end}") for end in ("pb", "pbtxt"))
    if os.path.isfile(binary):
        try:
            return binary, SavedModel.FromString(read_file(binary))
        except DecodeError as error:
            raise DataLossError(f"{binary} is damaged or truncated") from error
    if os.path.isfile(text):
        return text, parse_text(text, read_file(text), SavedModel)
    raise NotFoundError(f"{directory} holds no SavedModel: neither saved_model.pb nor .pbtxt")
