"""The registered ops by name.

Source: TensorFlow python/framework/op_def_registry.py.
"""

from opkernel.opdef.core.op_registry import global_op_registry
from opkernel.proto import OpDef


def get_registered_ops() -> dict[str, OpDef]:
    """The declarations of all ops that the global registry knows, by name."""
    return {op.name: op for op in global_op_registry().get_registered_ops()}
