"""The OpDefs of TensorFlow: `tensorflow_ops.pb.gz`, an OpList. Written by tools/generate_op_table.py."""

import functools
import gzip
from importlib import resources

from opkernel.proto import OpDef, OpList

__all__ = ["tensorflow_op_defs"]


@functools.cache
def tensorflow_op_defs() -> dict[str, OpDef]:
    """All OpDefs of TensorFlow 2.21 by name, without documentation; read once, in milliseconds."""
    packed = resources.files(__package__).joinpath("tensorflow_ops.pb.gz").read_bytes()
    return {op.name: op for op in OpList.FromString(gzip.decompress(packed)).op}
