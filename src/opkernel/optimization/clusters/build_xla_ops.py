"""BuildXlaOps: the calls of clusters become nodes that launch what an engine made of them.

A call becomes one XlaLaunch, which runs the function itself where there is no program.

Source: TensorFlow compiler/jit/build_xla_ops_pass.cc.
"""

from __future__ import annotations

from opkernel.graph import Operation
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.optimization.clusters.encapsulate_subgraphs import (
    COMPILE_MODE,
    ENGINE,
    NUM_CONSTANT_ARGS,
    NUM_RESOURCE_ARGS,
)
from opkernel.optimization.clusters.marks import MUST_COMPILE
from opkernel.proto import NameAttrList

__all__ = ["build_xla_ops"]


def build_xla_ops(editor: GraphEditor) -> None:
    """Have clusters launched."""
    options = editor.jit
    if options is None:
        return
    for op in editor.operations():
        attrs = op.message.attr
        if NUM_CONSTANT_ARGS in attrs and op.type in op.graph.function_library:
            nodes = op.graph.function_library[op.type].node_def
            is_strict = any(MUST_COMPILE in node.attr for node in nodes)
            _launch(editor, op, "strict" if is_strict else options.mode)


def _launch(editor: GraphEditor, call: Operation, mode: str) -> None:
    attrs, types = call.message.attr, call.input_types
    constants, resources = attrs[NUM_CONSTANT_ARGS].i, attrs[NUM_RESOURCE_ARGS].i
    editor.become(
        call,
        "XlaLaunch",
        call.inputs,
        {
            "Tconstants": types[:constants],
            "Targs": types[constants : len(types) - resources],
            "Nresources": resources,
            "Tresults": call.output_types,
            "function": NameAttrList(name=call.type),
            ENGINE: attrs[ENGINE].s,
            COMPILE_MODE: mode.encode(),
        },
    )
