"""The versions of the GraphDef format that this package writes and reads, and whether an op may be in a graph of a version.

Source: TensorFlow core/framework/op_def_util.cc (CheckOpDeprecation).
"""

import warnings

from opkernel.errors import UnimplementedError
from opkernel.proto import OpDef

GRAPH_DEF_VERSION = 2474
"""The producer version written into graphs: TensorFlow 2.21's (TF_GRAPH_DEF_VERSION)."""

GRAPH_DEF_VERSION_MIN_PRODUCER = 0
"""The oldest producer whose graphs can be read."""

GRAPH_DEF_VERSION_MIN_CONSUMER = 0
"""The oldest consumer that may read the graphs written here."""


def check_op_deprecation(op_def: OpDef, graph_def_version: int) -> None:
    """Warn of an op that later graphs may not use; refuse it in such a graph.

    Args:
        op_def: The op.
        graph_def_version: The producer version of the graph that uses it.

    Raises:
        UnimplementedError: graphs of this version may not use the op.
    """
    if not op_def.HasField("deprecation"):
        return
    deprecation = op_def.deprecation
    if graph_def_version >= deprecation.version:
        raise UnimplementedError(
            f"Op {op_def.name} is not available in GraphDef version {graph_def_version}. It has "
            f"been removed in version {deprecation.version}. {deprecation.explanation}."
        )
    warnings.warn(
        f"Op {op_def.name} is deprecated. It will cease to work in GraphDef version "
        f"{deprecation.version}. {deprecation.explanation}.",
        DeprecationWarning,
        stacklevel=2,
    )
