"""Ops that are known by their declaration: TensorFlow's OpDef and a shape function, no kernel yet.

The OpDefs stand in one table (`tensorflow_op_defs`), an OpList that tools/generate_op_table.py writes. The
modules here hold the shape functions of one topic each, in a dict `SHAPE_FNS` by the name of the op. An op that
gets a kernel moves, with its shape function, to the module of its topic one folder up and is declared there.
"""

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
