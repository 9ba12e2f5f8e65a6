"""The OpDefs of TensorFlow: `tensorflow_ops.pb.gz`, an OpList. Written by tools/generate_op_table.py."""

import functools
import os
import zlib

from opkernel.proto import OpDef, OpList

_GZIP = 31
"""For zlib: there is the header of a .gz file."""


@functools.cache
def tensorflow_op_defs() -> dict[str, OpDef]:
    """All OpDefs of TensorFlow 2.21 by name, without documentation; read once, in milliseconds."""
    with open(os.path.join(os.path.dirname(__file__), "tensorflow_ops.pb.gz"), "rb") as file:
        packed = file.read()
    return {op.name: op for op in OpList.FromString(zlib.decompress(packed, _GZIP)).op}
