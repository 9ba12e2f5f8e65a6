"""Whether a graph of some version may still use an op.

Source: TensorFlow core/framework/op_def_util.cc (CheckOpDeprecation).
"""

import warnings

from opkernel.errors import UnimplementedError
from opkernel.proto import OpDef

__all__ = ["check_op_deprecation"]


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
