"""load_tfjs_model: a graph model of TensorFlow.js as a MetaGraph, with its weights in the graph's constants.

    model.json               a GraphDef in JSON, its signature, the list of weights; since 2019
    tensorflowjs_model.pb    a binary GraphDef, whose list of weights is in weights_manifest.json; 2018
    group1-shard1of1.bin     weights

Tables are filled by a second graph, the model's initializer. It becomes part of the graph, and runs once, as the
initialisation of a SavedModel does.

Source: TensorFlow.js tfjs-converter/src/executor/graph_model.ts,
python/tensorflowjs/converters/tf_saved_model_conversion_v2.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from opkernel.errors import DataLossError, InvalidArgumentError, OpError
from opkernel.escaping import json_text, json_value
from opkernel.graph.core.node import COLOCATION_ATTR
from opkernel.graph.core.older_nodes import OLDER_OPS, add_later_attrs
from opkernel.graph.io.file_kind import FileKind, tfjs_model_file
from opkernel.graph.io.message_files import read_file, read_message, weights_manifest_beside
from opkernel.graph.io.next_step import next_step
from opkernel.graph.io.signature_names import DEFAULT_SIGNATURE
from opkernel.graph.io.tfjs_initializer import add_initializer
from opkernel.graph.io.tfjs_nodes import replace_tfjs_ops
from opkernel.graph.io.tfjs_signature import complete_signature
from opkernel.graph.io.tfjs_weights import ModelFiles, read_weights
from opkernel.messages import short_repr
from opkernel.proto import (
    FunctionDefLibrary,
    GraphDef,
    Message,
    MetaGraphDef,
    NodeDef,
    SignatureDef,
)
from opkernel.types import Array, DataType, TensorShape, tensor_to_proto
from opkernel.types.tensor import holds_values

_METADATA = "userDefinedMetadata"
"""The key of what a model says about itself, and the collection of the MetaGraph that holds it as JSON."""
_KERAS_KEYS = ("model_config", "class_name", "keras_version")

_AnyMessage = TypeVar("_AnyMessage", bound=Message)


def load_tfjs_model(path: str | os.PathLike[str]) -> MetaGraphDef:
    """The MetaGraph of a TensorFlow.js graph model.

    Its only signature, `serving_default`, is the model's own. Where a model names no inputs or no outputs, they are
    those of the graph, by the names of their tensors.

    Args:
        path: The folder of the model, its `model.json`, or its `tensorflowjs_model.pb`.

    Raises:
        NotFoundError, PermissionDeniedError: a file cannot be read.
        DataLossError: the model is damaged.
        InvalidArgumentError: it is a model of another kind, or names a file outside of its folder.
        ResourceExhaustedError: it is larger than the memory limit.
    """
    name = os.fspath(path)
    if os.path.isdir(name):
        name = tfjs_model_file(name) or name
    files = ModelFiles(name)
    manifest = weights_manifest_beside(name) if not name.endswith(".json") else None
    if manifest is not None:
        document: Any = {"weightsManifest": _json(manifest, files)}
        graph_def = read_message(name, GraphDef)
    else:
        document = _document(name, files)
        graph_def = _message(document["modelTopology"], GraphDef, "the graph", files)
    replace_tfjs_ops(graph_def)
    meta_graph = MetaGraphDef(graph_def=graph_def)
    _add_facts(meta_graph, document)
    initializer = document.get("modelInitializer") or {}
    started = _message(initializer, GraphDef, "the initializer", files)
    _drop_functions(started, {one.signature.name for one in graph_def.library.function})
    nodes = [*_nodes(meta_graph.graph_def), *_nodes(started)]
    _clean(nodes)
    _fill(nodes, read_weights(document["weightsManifest"], files), files)
    signature = _signature(document, files)
    if started.node:
        add_initializer(meta_graph, signature, started, _resources(document))
    complete_signature(signature, meta_graph.graph_def)
    meta_graph.signature_def[DEFAULT_SIGNATURE].CopyFrom(signature)
    return meta_graph


def _json(path: str, files: ModelFiles) -> Any:
    try:
        return json_value(read_file(path))
    except ValueError as error:  # bytes that are no text are one, too
        raise DataLossError(f"{path} is damaged or truncated: {error}") from error


def _document(path: str, files: ModelFiles) -> dict[str, Any]:
    """The content of a `model.json` that holds a graph and a list of weights."""
    document = _json(path, files)
    if not isinstance(document, dict):
        raise files.damage(f"it must be an object, not {short_repr(document)}")
    topology = document.get("modelTopology")
    if document.get("format") == "layers-model" or _is_keras(topology):
        kind = FileKind.TFJS_LAYERS
        raise InvalidArgumentError(f"{path} is {kind}{next_step(path, kind)}")
    if not isinstance(topology, dict) or not isinstance(topology.get("node"), list):
        raise files.damage("it has no modelTopology with the nodes of a graph")
    if "weightsManifest" not in document:
        raise files.damage("it has no weightsManifest, the list of its weights")
    return document


def _is_keras(topology: Any) -> bool:
    return isinstance(topology, dict) and any(key in topology for key in _KERAS_KEYS)


def _message(
    value: Any, message_class: type[_AnyMessage], what: str, files: ModelFiles
) -> _AnyMessage:
    """The message that JSON holds; fields that nobody knows are left out."""
    from google.protobuf import json_format  # slow to import

    try:
        parsed = json_format.ParseDict(value, message_class(), ignore_unknown_fields=True)
        found = message_class()
        found.MergeFromString(parsed.SerializeToString())  # refuses what nests too deep
        return found
    except (json_format.ParseError, ValueError, TypeError, AttributeError, KeyError) as error:
        raise files.damage(f"{what} cannot be read: {error}") from error
    except (RecursionError, OverflowError, SystemError) as error:  # protobuf's, of half characters
        raise files.damage(
            f"{what} cannot be read: it nests too deep, or has numbers or characters that do not exist"
        ) from error


def _drop_functions(initializer: GraphDef, known: set[str]) -> None:
    """Leave the functions out that the graph has, too: the converter copies all of them into both graphs."""
    own = [one for one in initializer.library.function if one.signature.name not in known]
    initializer.library.CopyFrom(FunctionDefLibrary(function=own))


def _clean(nodes: Iterable[NodeDef]) -> None:
    """Remove what TensorFlow.js does not read, and add what TensorFlow reads.

    Devices are the converter's, to have products fused. Nodes may be colocated with nodes that the converter removed.
    """
    for node in nodes:
        node.device = ""
        if COLOCATION_ATTR in node.attr:
            del node.attr[COLOCATION_ATTR]
        if node.op in OLDER_OPS:
            add_later_attrs(node)


def _add_facts(meta_graph: MetaGraphDef, document: Mapping[str, Any]) -> None:
    """Note who wrote the model, and what it says about itself."""
    info = meta_graph.meta_info_def
    for key, field in (
        ("generatedBy", "tensorflow_version"),
        ("convertedBy", "meta_graph_version"),
    ):
        if isinstance(document.get(key), str):
            setattr(info, field, document[key].encode(errors="replace").decode())
    info.tags.append("serve")
    metadata = document.get(_METADATA)
    if not isinstance(metadata, dict):
        return
    told = {key: value for key, value in metadata.items() if key != "signature"}
    if told:
        text = json_text(told)
        meta_graph.collection_def[_METADATA].bytes_list.value.append(text.encode())


def user_defined_metadata(meta_graph: MetaGraphDef) -> dict[str, Any]:
    """What the model of a MetaGraph says about itself; empty where it says nothing."""
    if _METADATA not in meta_graph.collection_def:
        return {}
    (text,) = meta_graph.collection_def[_METADATA].bytes_list.value[:1] or (b"{}",)
    try:
        found = json_value(text)
    except ValueError:  # a SavedModel may have a collection of that name
        return {}
    return found if isinstance(found, dict) else {}


# Constants.


def _nodes(graph_def: GraphDef) -> Iterator[NodeDef]:
    yield from graph_def.node
    for function in graph_def.library.function:
        yield from function.node_def


def _fill(nodes: Iterable[NodeDef], weights: Mapping[str, Array], files: ModelFiles) -> None:
    """Put the weights into the constants of their names.

    Raises:
        DataLossError: a constant has no weight, or one of another type or shape.
    """
    for node in nodes:
        if node.op != "Const":
            continue
        weight = weights.get(node.name)
        if weight is not None:
            value = _value_for(node, weight, files)
            node.attr["value"].tensor.CopyFrom(value)
        elif not _is_whole(node):
            raise files.damage(f"the list of weights lacks the constant {short_repr(node.name)}")


def _is_whole(node: NodeDef) -> bool:
    """Whether a constant holds the values of its elements, if it has elements."""
    tensor = node.attr["value"].tensor
    sizes = [dim.size for dim in tensor.tensor_shape.dim]
    return 0 in sizes or holds_values(tensor)


def _value_for(node: NodeDef, weight: Array, files: ModelFiles) -> Any:
    """The value of a constant: its weight, in the type of the constant.

    TensorFlow.js has fewer types than TensorFlow: the converter writes int64 as int32, and float64 as float32.
    """
    what = f"the constant {short_repr(node.name)}"
    try:
        dtype = DataType(node.attr["dtype"].type)
        shape = TensorShape.from_proto(node.attr["value"].tensor.tensor_shape)
        wanted = dtype.numpy_dtype
    except (ValueError, OpError) as error:
        raise files.damage(f"{what} has a type or shape that does not exist") from error
    if shape != TensorShape(weight.shape) and node.attr["value"].tensor.HasField("tensor_shape"):
        raise files.damage(f"{what} has the shape {shape}, and its weight {list(weight.shape)}")
    is_string = dtype is DataType.DT_STRING
    is_type = weight.dtype == wanted or _is_wider(wanted, weight.dtype)
    if not is_type or weight.dtype.hasobject != is_string:
        given = "string" if weight.dtype.hasobject else weight.dtype
        raise files.damage(f"{what} is {dtype.tf_name}, and its weight {given}")
    return tensor_to_proto(weight.astype(wanted, copy=False), dtype)


def _is_wider(wanted: Any, given: Any) -> bool:
    """Whether the converter writes numbers of a type as those of another."""
    kinds = wanted.kind, given.kind
    return kinds == ("f", "f") or kinds == ("c", "c") or set(kinds) <= {"i", "u"}


# Signatures.


def _signature(document: Mapping[str, Any], files: ModelFiles) -> SignatureDef:
    """The signature of the model; older models have it among their metadata."""
    metadata = document.get(_METADATA)
    older = metadata.get("signature") if isinstance(metadata, dict) else None
    found = document.get("signature") or older or {}
    signature = _message(found, SignatureDef, "the signature", files)
    signature.method_name = signature.method_name or "tensorflow/serving/predict"
    return signature


def _resources(document: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """The inputs of the graph that are tables, and the tensors of the initializer that give them, by their numbers."""
    found = []
    for part, key in (("signature", "inputs"), ("initializerSignature", "outputs")):
        signature = document.get(part)
        infos = signature.get(key) if isinstance(signature, dict) else None
        entries = infos.values() if isinstance(infos, dict) else ()
        found.append(
            {
                str(info["resourceId"]): str(info.get("name"))
                for info in entries
                if isinstance(info, dict) and "resourceId" in info
            }
        )
    return found[0], found[1]
