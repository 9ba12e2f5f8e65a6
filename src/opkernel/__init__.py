"""TensorFlow's op and kernel system in Python: declare ops, register kernels, run graphs.

    graph = opkernel.load_graph("model.pb")
    with opkernel.Session(graph) as session:
        y = session.run("y:0", {"x:0": x})

Names are loaded when they are first used, so that `import opkernel` by itself costs next to nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opkernel import errors as errors
    from opkernel import raw_ops as raw_ops
    from opkernel.graph import Graph as Graph
    from opkernel.graph import Operation as Operation
    from opkernel.graph import Tensor as Tensor
    from opkernel.graph import import_graph_def as import_graph_def
    from opkernel.graph import load_graph as load_graph
    from opkernel.graph import save_graph as save_graph
    from opkernel.kernel import OpKernel as OpKernel
    from opkernel.kernel import OpKernelConstruction as OpKernelConstruction
    from opkernel.kernel import OpKernelContext as OpKernelContext
    from opkernel.kernel import register_kernel as register_kernel
    from opkernel.opdef import InferenceContext as InferenceContext
    from opkernel.opdef import register_op as register_op
    from opkernel.runtime import RunOptions as RunOptions
    from opkernel.runtime import Session as Session
    from opkernel.types import DataType as DataType
    from opkernel.types import PartialTensorShape as PartialTensorShape
    from opkernel.types import TensorShape as TensorShape

__version__ = "0.1.0"

_ROOM_OF_NAME = {
    "Graph": "graph",
    "InferenceContext": "opdef",
    "OpKernel": "kernel",
    "OpKernelConstruction": "kernel",
    "OpKernelContext": "kernel",
    "Operation": "graph",
    "PartialTensorShape": "types",
    "RunOptions": "runtime",
    "Session": "runtime",
    "Tensor": "graph",
    "TensorShape": "types",
    "DataType": "types",
    "import_graph_def": "graph",
    "load_graph": "graph",
    "register_kernel": "kernel",
    "register_op": "opdef",
    "save_graph": "graph",
}
_MODULES = ("errors", "raw_ops")

__all__ = [
    "DataType",
    "Graph",
    "InferenceContext",
    "OpKernel",
    "OpKernelConstruction",
    "OpKernelContext",
    "Operation",
    "PartialTensorShape",
    "RunOptions",
    "Session",
    "Tensor",
    "TensorShape",
    "errors",
    "import_graph_def",
    "load_graph",
    "raw_ops",
    "register_kernel",
    "register_op",
    "save_graph",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"opkernel.{name}")
    room = _ROOM_OF_NAME.get(name)
    if room is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if room == "graph":  # the runtime folds constants for the shapes of graphs
        importlib.import_module("opkernel.runtime")
    value = globals()[name] = getattr(importlib.import_module(f"opkernel.{room}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
