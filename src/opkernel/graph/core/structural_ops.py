"""The ops that graphs themselves are made of: arguments and results of functions, placeholders; control flow of TensorFlow 1.

Source: TensorFlow core/ops/function_ops.cc, the node classes of core/graph/graph.cc.
"""

from __future__ import annotations

ARG_OPS = frozenset({"_Arg", "_DeviceArg"})
"""The ops whose nodes are the arguments of a function's body."""
RETVAL_OPS = frozenset({"_Retval", "_DeviceRetval"})
"""The ops whose nodes are the results of a function's body."""
STRUCTURAL_OPS = ARG_OPS | RETVAL_OPS
"""The ops that bodies of functions hold, whatever ops their graph knows."""
INPUT_OPS = frozenset({"Placeholder", "PlaceholderV2", "PlaceholderWithDefault"})
"""The ops whose nodes are the inputs of a graph."""
PLACEHOLDER_OPS = ARG_OPS | {"Placeholder", "PlaceholderV2"}
"""The ops that do nothing but stand for a fed value; to wait for one that is fed is to wait for nothing."""
STATELESS_CALLS = {
    "Case": "StatelessCase",
    "If": "StatelessIf",
    "StatefulPartitionedCall": "PartitionedCall",
    "While": "StatelessWhile",
}
"""The ops that call functions, each with the op that does the same for functions without state."""
VARIABLE_OPS = frozenset({"AutoReloadVariable", "VarHandleOp", "Variable", "VariableV2"})
"""The ops whose nodes stand for a variable."""
ASSIGNMENTS = frozenset({"AssignAddVariableOp", "AssignSubVariableOp", "AssignVariableOp"})
"""The ops that give a variable a value, by its handle."""


ENTER_OPS = frozenset({"Enter", "RefEnter"})
"""The ops that lead into a loop."""
EXIT_OPS = frozenset({"Exit", "RefExit"})
"""The ops that lead out of a loop."""
NEXT_ITERATION_OPS = frozenset({"NextIteration", "RefNextIteration"})
"""The ops that a loop's back edge may come from."""
MERGE_OPS = frozenset({"Merge", "RefMerge"})
"""The ops that pass on the one input that is alive; a loop's back edge may lead to them only."""
SWITCH_OPS = frozenset({"RefSwitch", "Switch", "_SwitchN"})
"""Ops that run and yet may give a dead output; waiting for the op is not waiting for the output."""
LOOP_OPS = ENTER_OPS | EXIT_OPS | NEXT_ITERATION_OPS | {"LoopCond"}
"""The ops of loops."""
LOW_LEVEL_CONTROL_FLOW = LOOP_OPS | SWITCH_OPS | MERGE_OPS | {"ControlTrigger"}
"""All of them."""

TRANSFER_OPS = frozenset({"_HostRecv", "_HostSend", "_Recv", "_Send", "Recv", "Send"})
"""The ops that run even where an input is dead, to tell the other side."""
MAY_BE_DEAD_ALONE = SWITCH_OPS | {"Recv", "_Recv", "_HostRecv"}
"""The ops that give dead outputs; to wait for such an output, an operation must take it."""
