"""Names of ops stand with the ops; outside they stand in rewrite patterns, rule tables and among structural ops only."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.architecture.source_code import Module, modules

from opkernel.graph.core import structural_ops
from opkernel.ops.loader import all_op_names

OPS = frozenset(all_op_names())

ROOMS = {
    "data": "the ops that methods of datasets make",
    "decompile.numpy_functions": "a function of NumPy for each op",
    "engines.openvino.ops": "a rule for each op",
    "graph.building.numpy_functions": "ops for each function of NumPy",
    "graph.freezing": "what reads of variables and tables become",
    "optimization": "the patterns that passes rewrite",
    "ops": "the ops",
    "providers": "kernels for ops",
    "raw_ops": "the ops as functions",
    "testing": "graphs and calls to test kernels and devices with",
    "xla.device_kernels": "a rule for each op",
    "xla.kernels": "a rule for each op",
}
"""The rooms, and parts of rooms, whose work it is to know ops by name."""

STRUCTURAL = {"Const", "Identity", "IdentityN", "NoOp"}.union(
    *(value for name, value in vars(structural_ops).items() if name.isupper()),
    structural_ops.STATELESS_CALLS.values(),
    {"SymbolicGradient", "XlaLaunch", "_ArrayToList", "_ListToArray"},
)
"""The ops of which graphs and functions consist whatever they compute."""

MODULES = {
    "decompile.functions": "Stack TensorArray",  # classes of the written program
    "distributed.training": (  # a public default, TensorFlow's
        "MutableDenseHashTable MutableDenseHashTableV2 MutableHashTable MutableHashTableOfTensors "
        "MutableHashTableOfTensorsV2 MutableHashTableV2 ResourceConditionalAccumulator"
    ),
    "drawing.scopes": "ReadVariableOp",
    "engines.openvino.tensors": "Transpose",  # an op of OpenVINO
    "gradients.body_gradient": "VariableShape",
    "gradients.loops": "TensorListPopBack",
    "gradients.symbolic_gradient": "Acosh Asinh Cast",  # rules for ops
    "gradients.gradient_nodes": "Cast ConcatV2 StridedSlice UnsortedSegmentSum ZerosLike",
    "graph.building.operators": (  # the operators of Python
        "Abs Add AddV2 BatchMatMulV2 Cast ComplexAbs FloorDiv FloorMod GatherNd Greater GreaterEqual Invert Less "
        "LessEqual LogicalAnd LogicalNot LogicalOr MatMul Mul Neg Pack Pow RealDiv StridedSlice Sub Where"
    ),
    "graph.core.create_op": "Pack",
    "graph.core.older_nodes": "_FusedConv2D",
    "graph.io.tfjs_nodes": (  # what ops of TensorFlow.js become
        "AddV2 BiasAdd Conv2D DepthwiseConv2dNative LeakyRelu MatMul Mul Neg Relu _FusedConv2D "
        "_FusedDepthwiseConv2dNative _FusedMatMul"
    ),
    "interop.counted_loops": "AddV2",
    "interop.session_variable": "Assign ReadVariableOp",
    "kernel.node_properties": "_XlaCompile",  # an attr
    "opdef.common_shapes.quantized": "BiasAdd Requantize Sum",  # values of the attr `fused_ops`
    "runtime.engines.xla_ops": "XlaLaunchV2 _XlaCompile _XlaRun",
    "runtime.plan.functional_ops": "_If _While",
    "runtime.session.direct_session": "TPUPartitionedCall",
    "runtime.program.error_report": "Assign ReadVariableOp Restore RestoreSlice RestoreV2",
    "runtime.program.request": "BroadcastGradientArgs",
    "runtime.session.convert_to_constants": (
        "InitializeTable InitializeTableV2 LookupTableExport LookupTableExportV2 ReadVariableOp"
    ),
    "runtime.program.session_state": "GetSessionHandle GetSessionHandleV2",
    "summary.writers": "CloseSummaryWriter CreateSummaryFileWriter FlushSummaryWriter SummaryWriter",
    "training.resource": "LookupTableExportV2",
    "training.variable": "ReadVariableOp",
    "wiring": "XlaLaunchV2 _XlaCompile _XlaRun",  # their kernels belong to the runtime
}
"""The modules that name other ops: those that they make nodes of, mostly. Every other name of an op is a fact about it
that belongs to its record (`OpTraits`), or to a rule that is registered."""

WORDS = {"A", "Any", "Attr", "B", "None", "Shape", "Slice"}
"""Ops with names that are words of messages and of Python, too; looked for in lists of ops only."""


def test_names_of_ops_stand_where_ops_are_known_by_name() -> None:
    found = {
        name: outside
        for module in modules().values()
        if not is_in_room(name := module.name.removeprefix("opkernel."))
        and (outside := {*names_of_ops(module)} - STRUCTURAL)
    }
    assert found == {name: {*ops.split()} for name, ops in MODULES.items()}


def is_in_room(module: str) -> bool:
    return any(f"{module}.".startswith(f"{room}.") for room in ROOMS)


def names_of_ops(module: Module) -> Iterator[str]:
    """The ops that strings of a module name: one in a string, or several with nothing else between."""
    skipped = {id(node) for node in not_names(module.tree)}
    for node in ast.walk(module.tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in skipped
        ):
            words = node.value.split()
            if OPS.issuperset(words) and words not in ([word] for word in WORDS):
                yield from words


def not_names(tree: ast.Module) -> Iterator[ast.AST]:
    """Docstrings, and the names that modules export."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            yield from ast.walk(node.value)
