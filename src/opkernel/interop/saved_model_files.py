"""The files of a SavedModel: its directory, the MetaGraphs in its file, and what its checkpoint holds for its objects.

    saved_model.pb (or .pbtxt)   the MetaGraphs
    variables/variables.*        a checkpoint
    assets/                      files that the graphs read
    fingerprint.pb               what the save was, in numbers

The object graph of the checkpoint numbers the objects of a SavedModel of TF2 in its own way: the same names, from the
root on, lead to the same objects (`SavedValues`).

Source: TensorFlow cc/saved_model/reader.cc, python/saved_model/loader_impl.py, constants.py, load.py,
python/checkpoint/restore.py.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from opkernel.checkpoint import ObjectGraph, load_checkpoint
from opkernel.checkpoint.object_graph import VARIABLE_VALUE
from opkernel.device.permissions import Permissions
from opkernel.errors import DataLossError, InvalidArgumentError, NotFoundError, UnimplementedError
from opkernel.graph.io.file_kind import tfjs_model_file
from opkernel.graph.io.message_files import parse_text, read_file, read_message
from opkernel.opdef.core.fingerprint import fingerprint64
from opkernel.proto import (
    AssetFileDef,
    DecodeError,
    FingerprintDef,
    MetaGraphDef,
    SavedModel,
    SavedObject,
)
from opkernel.types import DataType, PartialTensorShape

if TYPE_CHECKING:
    from opkernel.checkpoint import CheckpointReader


_SCHEMA_VERSION = 1
_ASSETS = "saved_model_assets"
_DEFAULT_TAGS = frozenset({"serve"})


class SavedModelFiles:
    """A SavedModel on disk, or a TensorFlow.js graph model, which has one MetaGraph and neither variables nor assets.

    Args:
        directory: Where it lies.
        owner: What the files go with, where they were unpacked.

    Attributes:
        directory: Where it lies.
        variables_directory: The directory of the checkpoint, which need not exist.
        assets_directory: The directory of the assets, which need not exist.
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
        self.variables_directory = os.path.join(self.directory, "variables")
        self.assets_directory = os.path.join(self.directory, "assets")
        self.path, self.meta_graphs, version = _read(self.directory)
        if version > _SCHEMA_VERSION:
            raise UnimplementedError(
                f"{self.path} has version {version} of the SavedModel format; this reader knows version "
                f"{_SCHEMA_VERSION}"
            )
        if not self.meta_graphs:
            raise DataLossError(f"{self.path} is damaged: it has no MetaGraph")

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
        expected = read_message(path, FingerprintDef).checkpoint_hash
        if expected and fingerprint64(read_file(index)) != expected:
            warnings.warn(
                f"{index} is not the one that was saved with {self.path}: its fingerprint differs "
                f"from that in {path}",
                stacklevel=2,
            )


def _read(directory: str) -> tuple[str, Sequence[MetaGraphDef], int]:
    """The file of a SavedModel, the MetaGraphs in it, and the version of its format; a TensorFlow.js graph model has one."""
    binary, text = (os.path.join(directory, f"saved_model.{end}") for end in ("pb", "pbtxt"))
    if os.path.isfile(binary):
        found, path = read_message(binary, SavedModel), binary
    elif os.path.isfile(text):
        found, path = parse_text(text, read_file(text), SavedModel), text
    else:
        model = tfjs_model_file(directory)
        if model is None:
            raise NotFoundError(
                f"{directory} holds no SavedModel: neither saved_model.pb nor .pbtxt"
            )
        from opkernel.graph.io.tfjs_model import load_tfjs_model  # for these models alone

        return model, [load_tfjs_model(model)], _SCHEMA_VERSION
    return path, found.meta_graphs, found.saved_model_schema_version


class SavedValues:
    """The values of objects; the checkpoint is opened when the first is asked for.

    Args:
        files: The files of the model.
        nodes: The objects.
        children: Gives the numbers of the children of an object, by name.
        permissions: Which files may be read.
    """

    def __init__(
        self,
        files: SavedModelFiles,
        nodes: Sequence[SavedObject],
        children: Callable[[int], Mapping[str, int]],
        permissions: Permissions,
    ) -> None:
        self._files = files
        self._nodes = nodes
        self._children = children
        self._permissions = permissions
        self._lock = threading.Lock()

    def key(
        self, number: int, attribute: str = VARIABLE_VALUE
    ) -> tuple[CheckpointReader, str] | None:
        """The reader and key of an attribute of an object; None where it was not saved.

        Raises:
            NotFoundError: the model has no checkpoint, or parts of it are missing.
            DataLossError: the checkpoint is damaged.
        """
        with self._lock:
            reader, graph, pairs = self._checkpoint
        key = graph.key_of(pairs[number], attribute) if number in pairs else None
        return None if key is None else (reader, key)

    def variable(self, number: int, name: str, dtype: DataType, shape: PartialTensorShape) -> Any:
        """The value of a variable.

        Raises:
            NotFoundError: there is no checkpoint.
            DataLossError: the checkpoint lacks the value, or has another type or shape.
        """
        found = self.key(number)
        if found is None:
            raise self._damage(f"the value of variable {name!r} was not saved")
        reader, key = found
        stored = reader.dtype(key)
        if stored is not dtype or not shape.is_compatible_with(
            PartialTensorShape(reader.shape(key))
        ):
            raise self._damage(
                f"variable {name!r} is {dtype.tf_name}{shape}, and {key} of the checkpoint is "
                f"{stored.tf_name}{reader.shape(key)}"
            )
        return reader.get(key)

    @cached_property
    def _checkpoint(self) -> tuple[CheckpointReader, ObjectGraph, dict[int, int]]:
        """The checkpoint, its object graph, and the number there of each object here."""
        prefix = self._files.variables_prefix
        if prefix is None:
            raise NotFoundError(
                f"{self._files.path} has variables, and there is no directory "
                f"{self._files.variables_directory} with their values"
            )
        self._files.check_fingerprint()
        reader = load_checkpoint(prefix, open_file=self._permissions.open_to_read)
        graph = ObjectGraph.of(reader)
        return reader, graph, self._paired(graph)

    def _paired(self, graph: ObjectGraph) -> dict[int, int]:
        """The numbers in the checkpoint of the objects here, the slots of optimisers included."""
        found = graph.paired(lambda number: self._children(number).items())
        for number, match in [*found.items()]:
            theirs = {
                (slot.original_variable_node_id, slot.slot_name): slot.slot_variable_node_id
                for slot in graph.proto.nodes[match].slot_variables
            }
            for slot in self._nodes[number].slot_variables:
                key = found.get(slot.original_variable_node_id, -1), slot.slot_name
                if key in theirs:
                    found.setdefault(slot.slot_variable_node_id, theirs[key])
        return found

    def _damage(self, fact: str) -> DataLossError:
        return DataLossError(f"{self._files.path} is damaged: {fact}")
