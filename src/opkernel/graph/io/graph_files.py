"""load_graph and save_graph: GraphDefs in files, binary or as text.

A file that holds no graph is named for what it is; a damaged one is told with the place.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

from google.protobuf.message import EncodeError

from opkernel.device.permissions import without_origins
from opkernel.errors import DataLossError, InvalidArgumentError, OpError
from opkernel.file_errors import checked_path, file_errors
from opkernel.graph.core.graph import Graph
from opkernel.graph.io.importer import GraphImporter, ImportOptions
from opkernel.graph.io.message_files import (
    LENGTH,
    Truncated,
    parse_file,
    parse_text,
    read_file,
    scan_fields,
    weights_manifest_beside,
)
from opkernel.proto import DecodeError, GraphDef, NodeDef
from opkernel.types import Array

if TYPE_CHECKING:
    from opkernel.opdef import OpRegistry

_TEXT_ENDINGS = (".pbtxt", ".txt", ".textproto")
_PART_NAMES = {1: "node", 2: "library", 3: "version", 4: "versions", 5: "debug_info"}
_HEAD = 1 << 10
"""The bytes that say whether a file begins with a node."""


def load_graph(
    path: str | os.PathLike[str],
    *,
    op_registry: OpRegistry | None = None,
    allow_unregistered: bool = False,
    allow_internal_names: bool = False,
) -> Graph:
    """The graph in a file that holds a GraphDef, binary or in text format, or in a TensorFlow.js graph model.

    Args:
        path: the file; its content tells which format it is in. For a TensorFlow.js model also its folder.
        op_registry: the ops; the global ones if there is none.
        allow_unregistered: keep nodes whose op is not registered, with unknown types.
        allow_internal_names: keep nodes whose names start with an underscore, as TensorFlow has them in
            bodies of functions and in parts of graphs, and never imports them.

    Raises:
        NotFoundError: there is no such file, or an op is not registered.
        InvalidArgumentError: the file holds something else, or the graph breaks a rule.
        DataLossError: the file is damaged.
    """
    graph = Graph(op_registry)
    options = ImportOptions(
        allow_unregistered=allow_unregistered,
        allow_internal_names=allow_internal_names,
        fill_empty_attrs=True,
    )
    graph_def, values = _graph_def_and_values(path)
    GraphImporter(graph, graph_def, options, values).prepare().commit()
    return graph


_SMALL = 1 << 20
"""Files of fewer bytes have their constants in messages."""


def _graph_def_and_values(path: str | os.PathLike[str]) -> tuple[GraphDef, Mapping[str, Array]]:
    """As `load_graph_def`, with the values of large constants, by their names, beside the message."""
    if begins_with_node(path) and os.path.getsize(path) >= _SMALL:
        from opkernel.graph.io.large_values import parse_with_values  # many files are small

        with suppress(DecodeError):
            return parse_with_values(path)
    return load_graph_def(path), {}


def load_graph_def(path: str | os.PathLike[str]) -> GraphDef:
    """The GraphDef in a file, binary or in text format, or of a TensorFlow.js graph model; unchecked.

    Raises:
        NotFoundError: there is no such file.
        InvalidArgumentError: the file holds something else.
        DataLossError: the file is damaged.
    """
    if begins_with_node(path):
        with suppress(DecodeError):
            return parse_file(path, GraphDef)
    return _load_other(path)


def begins_with_node(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins with a NodeDef that has a name and an op, as binary GraphDefs alone do.

    False for the GraphDef of a TensorFlow.js model, whose weights are in other files.
    """
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD)
        node = next(scan_fields(head))
        name, op = islice(scan_fields(head, node.start, node.stop), 2)
    except (OSError, ValueError, StopIteration):
        return False
    fields = [(field.number, field.wire_type) for field in (node, name, op)]
    is_node = fields == [(1, LENGTH), (1, LENGTH), (2, LENGTH)] and op.stop < len(head)
    is_node = is_node and head[op.start : op.stop].translate(None, b"_.>").isalnum()
    return is_node and weights_manifest_beside(path) is None


def _load_other(path: str | os.PathLike[str]) -> GraphDef:
    """The part of `load_graph_def` for files of any kind."""
    from opkernel.graph.io.file_kind import FileKind, file_kind  # most files are plain graphs

    kind = file_kind(path)
    if kind is FileKind.EMPTY:
        raise DataLossError(f"{path} is empty (0 bytes)")
    if kind is FileKind.GRAPH_DEF_TEXT:
        return parse_text(path, read_file(path), GraphDef)
    if kind is FileKind.TFJS_GRAPH:
        from opkernel.graph.io.tfjs_model import load_tfjs_model

        return load_tfjs_model(path).graph_def
    if kind not in (FileKind.GRAPH_DEF, FileKind.UNKNOWN):
        from opkernel.graph.io.next_step import next_step

        raise InvalidArgumentError(f"{path} is {kind}, not a GraphDef{next_step(path, kind)}")
    not_a_graph = InvalidArgumentError(f"{path} is not a GraphDef: it is {kind}")
    data = read_file(path)
    try:
        graph_def = GraphDef.FromString(data)
    except DecodeError as error:
        raise (not_a_graph if kind is FileKind.UNKNOWN else _damage(path, data)) from error
    if kind is FileKind.UNKNOWN and not graph_def.node:
        raise not_a_graph
    return graph_def


def save_graph(graph: Graph | GraphDef, path: str | os.PathLike[str]) -> None:
    """Write a graph as a GraphDef: as text where the name ends in .pbtxt, .txt or .textproto.

    Raises:
        InvalidArgumentError: the graph is too large for a protocol buffer (2 GiB), or no file can have that path.
        NotFoundError: there is no directory of that name.
        PermissionDeniedError: the file may not be written.
    """
    graph_def = without_origins(graph.as_graph_def() if isinstance(graph, Graph) else graph)
    if checked_path(path).endswith(_TEXT_ENDINGS):
        from google.protobuf import text_format  # slow to import, and seldom needed

        data = text_format.MessageToString(graph_def, as_utf8=True).encode()
    else:
        data = serialized_graph_def(graph_def)
    with file_errors(path), open(path, "wb") as file:
        file.write(data)


def serialized_graph_def(graph_def: GraphDef) -> bytes:
    """A GraphDef as bytes, the same for equal ones.

    Raises:
        InvalidArgumentError: it is too large for a protocol buffer (2 GiB).
    """
    try:
        return graph_def.SerializeToString(deterministic=True)
    except (EncodeError, ValueError) as error:
        raise InvalidArgumentError(f"The graph cannot be written as a GraphDef: {error}") from error


def _damage(path: str | os.PathLike[str], data: bytes) -> OpError:
    """The error for a file that cannot be parsed: where it is cut off, or which part is damaged."""
    last_node = ""
    try:
        for field in scan_fields(data):
            if field.stop > len(data):
                missing = field.stop - len(data)
                return DataLossError(
                    f"{path} is truncated: it ends at byte {len(data)}, {missing} bytes before the "
                    f"end of the {_PART_NAMES.get(field.number, 'field')} that starts at byte "
                    f"{field.offset}{last_node}"
                )
            part = data[field.start : field.stop]
            if field.number == 1 and field.wire_type == LENGTH:
                last_node = f", after node {NodeDef.FromString(part).name!r}"
    except Truncated as error:
        return DataLossError(f"{path} is damaged or truncated at byte {error.offset}{last_node}")
    except DecodeError:
        return DataLossError(
            f"{path} is damaged: the node that starts at byte {field.offset} cannot be "
            f"read{last_node}"
        )
    return DataLossError(f"{path} is damaged: its library or versions cannot be read")
