"""What is known of a SavedModel, or of a MetaGraph file, without running anything of it."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from opkernel.cli.meta_graph_needs import MetaGraphNeeds, model_requests
from opkernel.cli.model import Model
from opkernel.cli.nodes import all_nodes
from opkernel.cli.program_graph import program_facts
from opkernel.cli.show_graph import op_counts, refusals, running_facts
from opkernel.cli.signature import dtype_name, ports_of, signature_names
from opkernel.errors import OpError
from opkernel.graph import Graph, TensorSpec
from opkernel.graph.core.structural_ops import VARIABLE_OPS
from opkernel.graph.io.file_kind import tfjs_model_file
from opkernel.graph.io.tfjs_model import user_defined_metadata
from opkernel.interop.saved_model_files import SavedModelFiles
from opkernel.interop.session_model import graph_of
from opkernel.interop.structured_value import decoded
from opkernel.messages import short_repr
from opkernel.proto import (
    DecodeError,
    FingerprintDef,
    FunctionDef,
    MetaGraphDef,
    NodeDef,
    SavedObject,
    TensorShapeProto,
    VariableDef,
)
from opkernel.types import DataType, PartialTensorShape

_TRAINABLE = "trainable_variables"


def file_facts(model: Model) -> dict[str, Any]:
    """The file: what it is, its size, its fingerprint."""
    files = model.files
    path = os.fspath(model.file) if files is None else files.path
    if os.path.isdir(path):
        path = tfjs_model_file(path) or path
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


def chosen_signature_facts(meta_graph: MetaGraphDef, name: str) -> dict[str, Any]:
    """A signature, and what it runs."""
    graph, _ = _graph(meta_graph)
    program = program_facts(meta_graph, graph, name, MetaGraphNeeds(meta_graph))
    return {**signature_facts(meta_graph, name), **program}


def signature_facts(meta_graph: MetaGraphDef, name: str) -> dict[str, Any]:
    """A signature: its method, inputs and outputs."""
    definition = meta_graph.signature_def[name]
    return {
        "signature": name,
        "method": definition.method_name,
        "inputs": [port._asdict() for port in ports_of(definition.inputs)],
        "outputs": [port._asdict() for port in ports_of(definition.outputs)],
        "defaults": sorted(definition.defaults),
    }


def meta_graph_facts(meta_graph: MetaGraphDef, files: SavedModelFiles | None) -> dict[str, Any]:
    """All that is known of a MetaGraph."""
    nodes, info = [*all_nodes(meta_graph.graph_def)], meta_graph.meta_info_def
    needs = MetaGraphNeeds(meta_graph)
    graph, problem = _graph(meta_graph)
    running = {"not_runnable": {}} if graph is None else running_facts(graph, nodes)
    refused = [problem] if graph is None else refusals(graph, nodes)
    return {
        **tags_facts(meta_graph),
        "tensorflow_version": info.tensorflow_version,
        "git_version": info.tensorflow_git_version,
        "meta_graph_version": info.meta_graph_version,
        "user_defined_metadata": user_defined_metadata(meta_graph),
        "producer": meta_graph.graph_def.versions.producer,
        "signatures": [signature_facts(meta_graph, one) for one in signature_names(meta_graph)],
        "python_functions": saved_functions(meta_graph),
        "library": [_function(one) for one in meta_graph.graph_def.library.function],
        "variables": _variables(meta_graph),
        "assets": _assets(meta_graph, files),
        "ops": op_counts(nodes),
        **program_facts(meta_graph, graph, None, needs),
        "is_graph": graph is not None,
        **running,
        "used": {op: needs.uses_in_short(op) for op in running["not_runnable"]},
        "asks_for": model_requests(needs),
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
        ", ".join(f"{arg.name}: {arg.type_attr or dtype_name(arg.type)}" for arg in some)
        for some in (signature.input_arg, signature.output_arg)
    )
    return {"function": signature.name, "takes": takes, "gives": gives}


def _variables(meta_graph: MetaGraphDef) -> list[dict[str, Any]]:
    """The variables: the objects of TF2, or else the nodes of the graph."""
    nodes = meta_graph.object_graph_def.nodes
    objects = [node.variable for node in nodes if node.WhichOneof("kind") == "variable"]
    if nodes:
        return [_variable(one.name, one.dtype, one.shape, one.trainable) for one in objects]
    trained = {*_trainable(meta_graph)}
    distinct: dict[bytes, NodeDef] = {}
    for node in meta_graph.graph_def.node:
        if node.op in VARIABLE_OPS:
            distinct.setdefault(node.attr["shared_name"].s or node.name.encode(), node)
    return [
        _variable(one.name, one.attr["dtype"].type, one.attr["shape"].shape, one.name in trained)
        for one in distinct.values()
    ]


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
    facts: dict[str, Any] = {"name": name, "dtype": f"type {number}", "shape": None, "bytes": None}
    with suppress(OpError, ValueError):
        dtype, shape = DataType(number), PartialTensorShape.from_proto(proto)
        count = None if dtype is DataType.DT_STRING else shape.num_elements()
        size = None if count is None else count * dtype.size
        facts |= {"dtype": dtype.tf_name, "shape": shape.dims, "bytes": size}
    return {**facts, "trainable": is_trainable}


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


_UNREADABLE = "(arguments that cannot be read)"


def saved_functions(meta_graph: MetaGraphDef) -> dict[str, list[str]]:
    """What each function takes, once for each signature that was saved, by the path from the model."""
    nodes = meta_graph.object_graph_def.nodes
    found = {}
    for path, node in _objects(nodes):
        if node.WhichOneof("kind") == "function" and node.function.concrete_functions:
            names, skipped = _parameters(node)
            found[path] = [
                _takes(meta_graph, one, names[skipped:]) for one in node.function.concrete_functions
            ]
    return found


def concrete_functions(meta_graph: MetaGraphDef) -> Iterator[tuple[str, str]]:
    """The functions of the library that Python calls: the path from the model, and the name; a name once."""
    seen = set()
    for path, node in _objects(meta_graph.object_graph_def.nodes):
        for name in node.function.concrete_functions:
            if name not in seen:
                seen.add(name)
                yield path, name


def _objects(nodes: Sequence[SavedObject]) -> Iterator[tuple[str, SavedObject]]:
    """The objects with their paths from the root, the nearest first; those of signatures are left out."""
    waiting = deque([("", 0)] if nodes else [])
    seen = {0}
    while waiting:
        path, number = waiting.popleft()
        yield path, nodes[number]
        for child in nodes[number].children:
            is_new = child.node_id not in seen and 0 <= child.node_id < len(nodes)
            if is_new and not (number == 0 and child.local_name == "signatures"):
                seen.add(child.node_id)
                waiting.append((f"{path}.{child.local_name}".lstrip("."), child.node_id))


def _parameters(node: SavedObject) -> tuple[list[str], int]:
    """The names of the parameters, and how many of them the object itself takes."""
    spec = node.function.function_spec
    try:
        arguments = decoded(spec.fullargspec)
        return [str(name) for name in arguments.args], int(spec.is_method)
    except (OpError, AttributeError, TypeError):
        return [], 0


def _takes(meta_graph: MetaGraphDef, function: str, names: Sequence[str]) -> str:
    concrete = meta_graph.object_graph_def.concrete_functions
    if function not in concrete:
        return _UNREADABLE
    try:
        args, kwargs = decoded(concrete[function].canonicalized_input_signature)
        texts = [_text(names[i] if i < len(names) else "", one) for i, one in enumerate(args)]
        return f"({', '.join([*texts, *[_text(name, one) for name, one in kwargs.items()]])})"
    except (OpError, TypeError, ValueError, AttributeError):
        return _UNREADABLE


def _text(name: str, value: Any) -> str:
    if isinstance(value, TensorSpec):
        return f"{name or value.name or '_'}: {value}"
    if isinstance(value, list | tuple):
        inside = ", ".join(_text("", one).removeprefix("_: ") for one in value)
        return f"{name}: [{inside}]" if name else f"[{inside}]"
    if isinstance(value, dict):
        inside = ", ".join(_text(str(key), one) for key, one in value.items())
        return f"{name}: {{{inside}}}" if name else f"{{{inside}}}"
    return f"{name}={short_repr(value)}" if name else short_repr(value)
