"""Files and messages, damaged or not: ops decode them as TensorFlow does, or refuse them with its code.

`.venv-tensorflow/bin/python -m tools.campaigns decoding_tensorflow`, as for the campaign `tensorflow`.
"""

import random

from tools.campaigns.encoded_calls import KINDS, Call
from tools.campaigns.tensorflow import begin, differential

from opkernel import raw_ops
from opkernel.graph import Graph
from opkernel.proto import GraphDef

__all__ = ["begin", "case"]


def case(rng: random.Random) -> str:
    """Decode one file or a few messages, here and there."""
    kind = rng.choice([*KINDS])
    return f"{kind} {differential(_graph_of(KINDS[kind].draw(rng)))}"


def _graph_of(call: Call) -> GraphDef:
    """The call on constants."""
    with Graph().as_default() as graph:
        getattr(raw_ops, call.op)(**call.inputs, **call.attrs)
        return graph.as_graph_def()
