"""Graphs: operations and tensors, GraphDefs in and out, functions, shapes."""

from opkernel.graph.file_kind import FileKind, file_kind, kind_of_bytes
from opkernel.graph.full_type_inference import infer_full_types
from opkernel.graph.function_body import FunctionBody, graph_to_function_def, instantiate_function
from opkernel.graph.function_library import FunctionLibraryDefinition, function_defs_equal
from opkernel.graph.function_text import print_instantiated, print_node
from opkernel.graph.graph import Graph, get_default_graph, reset_default_graph
from opkernel.graph.graph_files import load_graph, load_graph_def, save_graph
from opkernel.graph.graph_import import import_graph_def
from opkernel.graph.graph_shapes import GraphShapes
from opkernel.graph.importer import GraphImporter, ImportOptions
from opkernel.graph.instantiate import (
    Instantiation,
    canonical_function_name,
    instantiate_nodes,
)
from opkernel.graph.op_def_library import apply_op
from opkernel.graph.operation import NodeSignature, Operation
from opkernel.graph.producer_ops import (
    ops_used_by_graph,
    remove_new_default_attrs,
    stripped_op_list_for_graph,
)
from opkernel.graph.runtime_hooks import install_runtime
from opkernel.graph.shape_refiner import ShapeRefiner
from opkernel.graph.tensor import Tensor
from opkernel.graph.tensor_name import is_valid_node_name, parse_tensor_name
from opkernel.opdef import DeviceName

__all__ = [
    "DeviceName",
    "FileKind",
    "FunctionBody",
    "FunctionLibraryDefinition",
    "Graph",
    "GraphImporter",
    "GraphShapes",
    "ImportOptions",
    "Instantiation",
    "NodeSignature",
    "Operation",
    "ShapeRefiner",
    "Tensor",
    "apply_op",
    "canonical_function_name",
    "file_kind",
    "function_defs_equal",
    "get_default_graph",
    "graph_to_function_def",
    "import_graph_def",
    "infer_full_types",
    "install_runtime",
    "instantiate_function",
    "instantiate_nodes",
    "is_valid_node_name",
    "kind_of_bytes",
    "load_graph",
    "load_graph_def",
    "ops_used_by_graph",
    "parse_tensor_name",
    "print_instantiated",
    "print_node",
    "remove_new_default_attrs",
    "reset_default_graph",
    "save_graph",
    "stripped_op_list_for_graph",
]
