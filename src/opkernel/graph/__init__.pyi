from opkernel.graph.building.constructors import apply_op as apply_op
from opkernel.graph.building.constructors import constant as constant
from opkernel.graph.building.constructors import placeholder as placeholder
from opkernel.graph.building.definitions import func as func
from opkernel.graph.building.definitions import function_def as function_def
from opkernel.graph.building.definitions import graph_def as graph_def
from opkernel.graph.building.definitions import node_def as node_def
from opkernel.graph.core.default_graph import get_default_graph as get_default_graph
from opkernel.graph.core.default_graph import reset_default_graph as reset_default_graph
from opkernel.graph.core.graph import Graph as Graph
from opkernel.graph.core.operation import Operation as Operation
from opkernel.graph.core.signature import NodeSignature as NodeSignature
from opkernel.graph.core.tensor import Tensor as Tensor
from opkernel.graph.core.tensor_name import is_valid_node_name as is_valid_node_name
from opkernel.graph.core.tensor_name import parse_tensor_name as parse_tensor_name
from opkernel.graph.edit.graph_edit import GraphEdit as GraphEdit
from opkernel.graph.edit.inline_function import (
    ExpandInlineFunctionsOptions as ExpandInlineFunctionsOptions,
)
from opkernel.graph.edit.inline_function import (
    InlineFunctionBodyOptions as InlineFunctionBodyOptions,
)
from opkernel.graph.edit.inline_function import KeepCallerNode as KeepCallerNode
from opkernel.graph.edit.inline_function import OutputControlSource as OutputControlSource
from opkernel.graph.edit.inline_function import expand_inline_functions as expand_inline_functions
from opkernel.graph.edit.inline_function import inline_function_body as inline_function_body
from opkernel.graph.edit.inline_function import validate_inlining as validate_inlining
from opkernel.graph.edit.simplify_graph import remove_dead_nodes as remove_dead_nodes
from opkernel.graph.edit.simplify_graph import remove_identity_nodes as remove_identity_nodes
from opkernel.graph.edit.simplify_graph import (
    remove_list_array_converter as remove_list_array_converter,
)
from opkernel.graph.freezing.freeze_graph import freeze_function as freeze_function
from opkernel.graph.freezing.freeze_graph import freeze_graph as freeze_graph
from opkernel.graph.functions.function_body import FunctionBody as FunctionBody
from opkernel.graph.functions.function_body import instantiate_function as instantiate_function
from opkernel.graph.functions.function_library import (
    FunctionLibraryDefinition as FunctionLibraryDefinition,
)
from opkernel.graph.functions.function_library import function_def_hash as function_def_hash
from opkernel.graph.functions.function_library import function_defs_equal as function_defs_equal
from opkernel.graph.functions.graph_to_function import (
    graph_to_function_def as graph_to_function_def,
)
from opkernel.graph.functions.instantiate import Instantiation as Instantiation
from opkernel.graph.functions.instantiate import canonical_function_name as canonical_function_name
from opkernel.graph.functions.instantiate import instantiate_nodes as instantiate_nodes
from opkernel.graph.functions.instantiate import print_instantiated as print_instantiated
from opkernel.graph.functions.instantiate import print_node as print_node
from opkernel.graph.inference.full_type_inference import infer_full_types as infer_full_types
from opkernel.graph.inference.graph_shapes import GraphShapes as GraphShapes
from opkernel.graph.inference.shape_refiner import ShapeRefiner as ShapeRefiner
from opkernel.graph.io.file_kind import FileKind as FileKind
from opkernel.graph.io.file_kind import file_kind as file_kind
from opkernel.graph.io.file_kind import kind_of_bytes as kind_of_bytes
from opkernel.graph.io.graph_files import load_graph as load_graph
from opkernel.graph.io.graph_files import load_graph_def as load_graph_def
from opkernel.graph.io.graph_files import save_graph as save_graph
from opkernel.graph.io.graph_import import import_graph_def as import_graph_def
from opkernel.graph.io.graph_import import ops_used_by_graph as ops_used_by_graph
from opkernel.graph.io.graph_import import remove_new_default_attrs as remove_new_default_attrs
from opkernel.graph.io.graph_import import stripped_op_list_for_graph as stripped_op_list_for_graph
from opkernel.graph.io.importer import GraphImporter as GraphImporter
from opkernel.graph.io.importer import ImportOptions as ImportOptions
from opkernel.graph.tracing.concrete_function import ConcreteFunction as ConcreteFunction
from opkernel.graph.tracing.func_graph import FuncGraph as FuncGraph
from opkernel.graph.tracing.function_tracing import Function as Function
from opkernel.graph.tracing.function_tracing import function as function
from opkernel.graph.tracing.functional_control_flow import cond as cond
from opkernel.graph.tracing.functional_control_flow import switch_case as switch_case
from opkernel.graph.tracing.functional_control_flow import while_loop as while_loop
from opkernel.graph.tracing.tensor_spec import TensorSpec as TensorSpec
from opkernel.opdef import DeviceName as DeviceName

__all__: list[str]
