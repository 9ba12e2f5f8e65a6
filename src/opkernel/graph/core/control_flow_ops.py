"""The names of TensorFlow 1's control-flow ops, and of the ops that cross devices.

Source: the node classes of TensorFlow core/graph/graph.cc.
"""

__all__ = [
    "ENTER_OPS",
    "EXIT_OPS",
    "LOOP_HEAD_OPS",
    "LOOP_OPS",
    "LOW_LEVEL_CONTROL_FLOW",
    "MERGE_OPS",
    "NEXT_ITERATION_OPS",
    "SWITCH_OPS",
    "TRANSFER_OPS",
]

ENTER_OPS = frozenset({"Enter", "RefEnter"})
"""The ops that lead into a loop."""
EXIT_OPS = frozenset({"Exit", "RefExit"})
"""The ops that lead out of a loop."""
NEXT_ITERATION_OPS = frozenset({"NextIteration", "RefNextIteration"})
"""The ops that a loop's back edge may come from."""
LOOP_HEAD_OPS = frozenset({"Merge", "RefMerge"})
"""The ops that a loop's back edge may lead to."""
MERGE_OPS = LOOP_HEAD_OPS
"""The ops that pass on the one input that is alive."""
SWITCH_OPS = frozenset({"RefSwitch", "Switch", "_SwitchN"})
"""Ops that run and yet may give a dead output; waiting for the op is not waiting for the output."""
LOOP_OPS = ENTER_OPS | EXIT_OPS | NEXT_ITERATION_OPS | {"LoopCond"}
"""The ops of loops."""
LOW_LEVEL_CONTROL_FLOW = LOOP_OPS | SWITCH_OPS | MERGE_OPS | {"ControlTrigger"}
"""All of them."""

TRANSFER_OPS = frozenset({"_HostRecv", "_HostSend", "_Recv", "_Send", "Recv", "Send"})
"""The ops that run even where an input is dead, to tell the other side."""
