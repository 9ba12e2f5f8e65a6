"""The ops that graphs themselves are made of: arguments and results of functions, placeholders.

Source: TensorFlow core/ops/function_ops.cc.
"""

__all__ = [
    "ARG_OPS",
    "INPUT_OPS",
    "PLACEHOLDER_OPS",
    "RETVAL_OPS",
    "STATELESS_CALLS",
    "STRUCTURAL_OPS",
]

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
