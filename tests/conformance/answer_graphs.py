"""Answers about graphs and functions: importing, instantiating, libraries."""

from collections.abc import Callable
from typing import Any, Protocol

from google.protobuf import text_format

from opkernel.errors import OpError
from opkernel.graph import (
    FunctionLibraryDefinition,
    Graph,
    GraphImporter,
    ImportOptions,
    canonical_function_name,
    instantiate_nodes,
    print_instantiated,
)
from opkernel.opdef import OpRegistry, remove_descriptions_from_op_def
from opkernel.optimization.algebra.common_subexpressions import optimize_cse
from opkernel.proto import AttrValue, FunctionDef, FunctionDefLibrary, GraphDef, OpDef

Query = dict[str, Any]

OK = {"ok": True}


class Registries(Protocol):
    """The ops of a request."""

    ops: OpRegistry


def refusal(error: OpError) -> dict[str, Any]:
    """The status object of an error."""
    return {"ok": False, "error_code": error.code.name, "error_text": str(error)}


def imported(registries: Registries, query: Query) -> Graph:
    """The graph of a query as TensorFlow's sessions read it."""
    graph = Graph(registries.ops)
    options = ImportOptions(
        validate_nodes=False,
        validate_colocation=False,
        allow_internal_names=query.get("allow_internal_ops", False),
        expect_device=query.get("expect_device_spec", False),
    )
    graph_def = text_format.Parse(query["graph_def"], GraphDef())
    graph_def.versions.producer = min(graph_def.versions.producer or 1, 2474)
    importer = GraphImporter(graph, graph_def, options)
    importer.prepare()
    importer.commit()
    return graph


def import_graph(registries: Registries, query: Query) -> Any:
    """The graph as TensorFlow's sessions read it, with the source and sink that they add."""
    graph = imported(registries, query)
    exported = graph.as_graph_def()
    exported.ClearField("versions")
    ops = graph.get_operations()
    edges = sum(len(op.inputs) + len(op.control_inputs) for op in ops)
    roots = sum(not op.inputs and not op.control_inputs for op in ops)
    leaves = sum(not op.consumer_edges() for op in ops)
    return {
        "status": OK,
        "graph_def": text_format.MessageToString(exported, as_one_line=True),
        "num_nodes": len(ops) + 2,
        "num_edges": edges + roots + leaves + 1,
    }


def cse(registries: Registries, query: Query) -> Any:
    """The graph without what is computed twice."""
    graph_def, changed = optimize_cse(imported(registries, query))
    graph_def.ClearField("versions")
    text = text_format.MessageToString(graph_def, as_one_line=True)
    return {"status": OK, "graph_def": text, "changed": changed}


def instantiate(registries: Registries, query: Query) -> Any:
    """The nodes of a function, or why there are none."""
    function = text_format.Parse(query["function"], FunctionDef())
    attrs = {name: text_format.Parse(text, AttrValue()) for name, text in query["attrs"].items()}
    library = FunctionLibraryDefinition(registries.ops)
    answer: dict[str, Any] = {
        "canonical": canonical_function_name(function.signature.name, attrs),
        "library": OK,
    }
    try:
        for text in query["library"]:
            library.add_function(text_format.Parse(text, FunctionDef()))
    except OpError as error:
        answer["library"] = refusal(error)
    try:
        result = instantiate_nodes(function, attrs, lambda op: library.look_up(op).op_def)
    except OpError as error:
        return answer | {"status": refusal(error)}
    return answer | {
        "status": OK,
        "nodes": [text_format.MessageToString(n, as_one_line=True) for n in result.nodes],
        "arg_types": [dtype.string for dtype in result.arg_types],
        "ret_types": [dtype.string for dtype in result.ret_types],
        "debug": print_instantiated(result.nodes),
    }


def function_library(registries: Registries, query: Query) -> Any:
    """One result for each call on a library."""
    library = FunctionLibraryDefinition(registries.ops)
    results = []
    for method, *args in query["calls"]:
        try:
            results.append(LIBRARY_CALLS[method](library, *args))
        except OpError as error:
            results.append(refusal(error))
    return {"results": results}


def _look_up(library: FunctionLibraryDefinition, name: str) -> Any:
    op_def = OpDef.FromString(library.look_up(name).op_def.SerializeToString())
    remove_descriptions_from_op_def(op_def)
    return OK | {"op_def": text_format.MessageToString(op_def, as_one_line=True)}


def _done(change: Callable[..., None], *args: Any) -> dict[str, Any]:
    change(*args)
    return OK


LIBRARY_CALLS: dict[str, Callable[..., Any]] = {
    "AddFunctionDef": lambda library, text: _done(
        library.add_function, text_format.Parse(text, FunctionDef())
    ),
    "AddGradientDef": lambda library, name, gradient: _done(library.add_gradient, name, gradient),
    "AddLibrary": lambda library, text: _done(
        library.add_library, text_format.Parse(text, FunctionDefLibrary())
    ),
    "RemoveFunction": lambda library, name: _done(library.remove_function, name),
    "Contains": lambda library, name: {"value": name in library},
    "FindGradient": lambda library, name: {"value": library.find_gradient(name)},
    "LookUp": _look_up,
    "num_functions": lambda library: {"value": len(library)},
}

ANSWER_OF: dict[str, Callable[[Any, Query], Any]] = {
    "ImportGraph": import_graph,
    "InstantiateFunction": instantiate,
    "FunctionLibrary": function_library,
    "OptimizeCSE": cse,
}
