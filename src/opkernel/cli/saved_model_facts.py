"""What is known of a SavedModel, or of a MetaGraph file, without running anything of it."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable
from typing import Any

from opkernel.cli.graph_facts import all_nodes, not_runnable
from opkernel.cli.meta_graph_needs import MetaGraphNeeds
from opkernel.cli.model import Model
from opkernel.cli.model_requests import model_requests
from opkernel.cli.refusals import refusals
from opkernel.cli.saved_functions import saved_functions
from opkernel.cli.signature_ports import ports_of, signature_names
from opkernel.errors import OpError
from opkernel.graph import Graph
from opkernel.graph.freezing.held_values import VARIABLES
from opkernel.interop.saved_model.saved_model_files import SavedModelFiles
from opkernel.interop.session_model import graph_of
from opkernel.proto import (
    DecodeError,
    FingerprintDef,
    FunctionDef,
    MetaGraphDef,
    NodeDef,
    TensorShapeProto,
    VariableDef,
)
from opkernel.types import DataType, PartialTensorShape

_TRAINABLE = "trainable_variables"


def file_facts(model: Model) -> dict[str, Any]:
    """The file: what it is, its size, its fingerprint."""
    files = model.files
    path = os.fspath(model.file) if files is None else files.path
    return {
        "file": str(model),
        "kind": str(model.kind),
        "file_bytes": os.stat(path).st_size,
        "fingerprint": None if files is None else _fingerprint(files),
    }


def _fingerprint(files: SavedModelFiles) -> dict[str, str] | None:
    """The numbers of `fingerprint.pb`, as text: JSON has no numbers of that size."""
    path = os.path.join(files.directory, "fingerprint.pb")
    try:
        with open(path, "rb") as file:
            found = FingerprintDef.FromString(file.read())
    except (OSError, DecodeError):
        return None
    return {
        field.name: value if isinstance(value, str) else str(getattr(value, "producer", value))
        for field, value in found.ListFields()
    }


def tags_facts(meta_graph: MetaGraphDef) -> dict[str, Any]:
    """The tags of a MetaGraph, and what is in it, in short."""
    return {
        "tags": sorted(meta_graph.meta_info_def.tags),
        "signature_names": signature_names(meta_graph),
        "nodes": len(meta_graph.graph_def.node),
        "functions": len(meta_graph.graph_def.library.function),
    }


def signature_facts(meta_graph: MetaGraphDef, name: str) -> dict[str, Any]:
    """A signature: its method, inputs and outputs."""
    definition = meta_graph.signature_def[name]
    return {
        "signature": name,
        "method": definition.method_name,
        "inputs": [port.as_json() for port in ports_of(definition.inputs)],
        "outputs": [port.as_json() for port in ports_of(definition.outputs)],
        "defaults": sorted(definition.defaults),
    }


def meta_graph_facts(meta_graph: MetaGraphDef, files: SavedModelFiles | None) -> dict[str, Any]:
    """All that is known of a MetaGraph."""
    nodes, info = [*all_nodes(meta_graph.graph_def)], meta_graph.meta_info_def
    needs = MetaGraphNeeds(meta_graph)
    graph, problem = _graph(meta_graph)
    missing = {} if graph is None else not_runnable(graph, nodes)
    refused = [problem] if graph is None else refusals(graph, nodes)
    return {
        **tags_facts(meta_graph),
        "tensorflow_version": info.tensorflow_version,
        "git_version": info.tensorflow_git_version,
        "producer": meta_graph.graph_def.versions.producer,
        "signatures": [signature_facts(meta_graph, one) for one in signature_names(meta_graph)],
        "python_functions": saved_functions(meta_graph),
        "library": [_function(one) for one in meta_graph.graph_def.library.function],
        "variables": _variables(meta_graph),
        "assets": _assets(meta_graph, files),
        "ops": dict(Counter(node.op for node in nodes).most_common()),
        "is_graph": graph is not None,
        "not_runnable": missing,
        "used": {op: needs.uses_in_short(op) for op in missing},
        "asks_for": [one.as_json() for one in model_requests(needs)],
        **({"refused": refused} if refused else {}),
    }


def _graph(meta_graph: MetaGraphDef) -> tuple[Graph | None, str]:
    """The graph; None, and the reason, where the nodes make none."""
    try:
        return graph_of(meta_graph), ""
    except OpError as error:
        return None, error.message


def _function(function: FunctionDef) -> dict[str, str]:
    signature = function.signature
    takes, gives = (
        ", ".join(f"{arg.name}: {_type(arg.type, arg.type_attr)}" for arg in some)
        for some in (signature.input_arg, signature.output_arg)
    )
    return {"function": signature.name, "takes": takes, "gives": gives}


def _type(dtype: int, attr: str) -> str:
    try:
        return attr or DataType(dtype).tf_name
    except ValueError:
        return f"type {dtype}"


def _variables(meta_graph: MetaGraphDef) -> list[dict[str, Any]]:
    """The variables: the objects of TF2, or else the nodes of the graph."""
    objects = [
        node.variable
        for node in meta_graph.object_graph_def.nodes
        if node.WhichOneof("kind") == "variable"
    ]
    if meta_graph.object_graph_def.nodes:
        return [_variable(one.name, one.dtype, one.shape, one.trainable) for one in objects]
    trained = {*_trainable(meta_graph)}
    return [
        _variable(
            node.name, node.attr["dtype"].type, node.attr["shape"].shape, node.name in trained
        )
        for node in _distinct(meta_graph.graph_def.node)
    ]


def _distinct(nodes: Iterable[NodeDef]) -> list[NodeDef]:
    found: dict[bytes, NodeDef] = {}
    for node in nodes:
        if node.op in VARIABLES:
            found.setdefault(node.attr["shared_name"].s or node.name.encode(), node)
    return [*found.values()]


def _trainable(meta_graph: MetaGraphDef) -> Iterable[str]:
    """The nodes of the variables that training changes."""
    if _TRAINABLE not in meta_graph.collection_def:
        return
    for data in meta_graph.collection_def[_TRAINABLE].bytes_list.value:
        try:
            definition = VariableDef.FromString(data)
        except DecodeError:
            continue
        if definition.trainable:
            yield definition.variable_name.partition(":")[0]


def _variable(
    name: str, number: int, proto: TensorShapeProto, is_trainable: bool
) -> dict[str, Any]:
    try:
        dtype, shape = DataType(number), PartialTensorShape.from_proto(proto)
        dims = None if shape.rank is None else [*shape.as_list()]
        is_known = dims is not None and None not in dims and dtype is not DataType.DT_STRING
        size = math.prod(dims) * dtype.size if is_known else None  # type: ignore[arg-type]  # known
        text = dtype.tf_name
    except (OpError, ValueError):
        dims, size, text = None, None, f"type {number}"
    return {"name": name, "dtype": text, "shape": dims, "bytes": size, "trainable": is_trainable}


def _assets(meta_graph: MetaGraphDef, files: SavedModelFiles | None) -> list[dict[str, Any]]:
    """The assets; one without size is not there."""
    if files is None:
        return []
    try:
        paths = files.assets(meta_graph)
    except OpError as error:
        return [{"tensor": "", "file": "", "bytes": None, "problem": error.message}]
    return [
        {
            "tensor": tensor,
            "file": os.path.relpath(path, files.directory),
            "bytes": os.stat(path).st_size if os.path.isfile(path) else None,
        }
        for tensor, path in paths.items()
    ]
