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
    from opkernel import testing as testing
    from opkernel.gradients import IndexedSlices as IndexedSlices
    from opkernel.gradients import IndexedSlicesValue as IndexedSlicesValue
    from opkernel.gradients import gradients as gradients
    from opkernel.gradients import no_gradient as no_gradient
    from opkernel.gradients import register_gradient as register_gradient
    from opkernel.graph import ConcreteFunction as ConcreteFunction
    from opkernel.graph import Graph as Graph
    from opkernel.graph import Operation as Operation
    from opkernel.graph import Tensor as Tensor
    from opkernel.graph import TensorSpec as TensorSpec
    from opkernel.graph import cond as cond
    from opkernel.graph import constant as constant
    from opkernel.graph import function as function
    from opkernel.graph import import_graph_def as import_graph_def
    from opkernel.graph import load_graph as load_graph
    from opkernel.graph import placeholder as placeholder
    from opkernel.graph import save_graph as save_graph
    from opkernel.graph import switch_case as switch_case
    from opkernel.graph import while_loop as while_loop
    from opkernel.kernel import AsyncOpKernel as AsyncOpKernel
    from opkernel.kernel import CancellationManager as CancellationManager
    from opkernel.kernel import Name as Name
    from opkernel.kernel import OpKernel as OpKernel
    from opkernel.kernel import OpKernelConstruction as OpKernelConstruction
    from opkernel.kernel import OpKernelContext as OpKernelContext
    from opkernel.kernel import register_kernel as register_kernel
    from opkernel.opdef import InferenceContext as InferenceContext
    from opkernel.opdef import register_op as register_op
    from opkernel.optimization import Grouping as Grouping
    from opkernel.optimization import optimization_passes as optimization_passes
    from opkernel.optimization import optimize_functions as optimize_functions
    from opkernel.optimization import optimize_graph as optimize_graph
    from opkernel.optimization import register_optimization as register_optimization
    from opkernel.plugins import API_VERSION as API_VERSION
    from opkernel.plugins import load_library as load_library
    from opkernel.proto import RunMetadata as RunMetadata
    from opkernel.runtime import CallableOptions as CallableOptions
    from opkernel.runtime import DirectSession as DirectSession
    from opkernel.runtime import RunOptions as RunOptions
    from opkernel.runtime import Session as Session
    from opkernel.runtime import SessionConfig as SessionConfig
    from opkernel.runtime import SessionMetadata as SessionMetadata
    from opkernel.runtime import TensorHandle as TensorHandle
    from opkernel.runtime import kernel_function as kernel_function
    from opkernel.runtime.tracing import write_chrome_trace as write_chrome_trace
    from opkernel.runtime.tracing import write_perfetto_trace as write_perfetto_trace
    from opkernel.types import DataType as DataType
    from opkernel.types import PartialTensorShape as PartialTensorShape
    from opkernel.types import TensorShape as TensorShape
    from opkernel.types import bfloat16 as bfloat16
    from opkernel.types import bool_ as bool  # noqa: A004, F401  # as `tf.bool`
    from opkernel.types import complex64 as complex64
    from opkernel.types import complex128 as complex128
    from opkernel.types import double as double
    from opkernel.types import float4_e2m1fn as float4_e2m1fn
    from opkernel.types import float8_e4m3b11fnuz as float8_e4m3b11fnuz
    from opkernel.types import float8_e4m3fn as float8_e4m3fn
    from opkernel.types import float8_e4m3fnuz as float8_e4m3fnuz
    from opkernel.types import float8_e5m2 as float8_e5m2
    from opkernel.types import float8_e5m2fnuz as float8_e5m2fnuz
    from opkernel.types import float16 as float16
    from opkernel.types import float32 as float32
    from opkernel.types import float64 as float64
    from opkernel.types import half as half
    from opkernel.types import int2 as int2
    from opkernel.types import int4 as int4
    from opkernel.types import int8 as int8
    from opkernel.types import int16 as int16
    from opkernel.types import int32 as int32
    from opkernel.types import int64 as int64
    from opkernel.types import qint8 as qint8
    from opkernel.types import qint16 as qint16
    from opkernel.types import qint32 as qint32
    from opkernel.types import quint8 as quint8
    from opkernel.types import quint16 as quint16
    from opkernel.types import resource as resource
    from opkernel.types import string as string
    from opkernel.types import uint2 as uint2
    from opkernel.types import uint4 as uint4
    from opkernel.types import uint8 as uint8
    from opkernel.types import uint16 as uint16
    from opkernel.types import uint32 as uint32
    from opkernel.types import uint64 as uint64
    from opkernel.types import variant as variant

__version__ = "0.1.0"

_NAMES_OF_ROOM = {
    "gradients": ["IndexedSlices", "IndexedSlicesValue", "no_gradient", "register_gradient"],
    "graph": [
        "ConcreteFunction",
        "Graph",
        "Operation",
        "Tensor",
        "TensorSpec",
        "cond",
        "constant",
        "function",
        "import_graph_def",
        "load_graph",
        "placeholder",
        "save_graph",
        "switch_case",
        "while_loop",
    ],
    "kernel": [
        "AsyncOpKernel",
        "CancellationManager",
        "Name",
        "OpKernel",
        "OpKernelConstruction",
        "OpKernelContext",
        "register_kernel",
    ],
    "opdef": ["InferenceContext", "register_op"],
    "optimization": [
        "Grouping",
        "optimization_passes",
        "optimize_functions",
        "optimize_graph",
        "register_optimization",
    ],
    "plugins": ["API_VERSION", "load_library"],
    "proto": ["RunMetadata"],
    "runtime": [
        "CallableOptions",
        "DirectSession",
        "RunOptions",
        "Session",
        "SessionConfig",
        "SessionMetadata",
        "TensorHandle",
        "kernel_function",
    ],
    "runtime.tracing": ["write_chrome_trace", "write_perfetto_trace"],
    "types": ["DataType", "PartialTensorShape", "TensorShape"],
}
_DTYPES = [
    "bfloat16",
    "bool",
    "complex64",
    "complex128",
    "double",
    "float4_e2m1fn",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float16",
    "float32",
    "float64",
    "half",
    "int2",
    "int4",
    "int8",
    "int16",
    "int32",
    "int64",
    "qint8",
    "qint16",
    "qint32",
    "quint8",
    "quint16",
    "resource",
    "string",
    "uint2",
    "uint4",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "variant",
]
_MODULES = ["errors", "gradients", "raw_ops", "testing"]  # one of them is called, too
_ROOM_OF_NAME = {name: room for room, names in _NAMES_OF_ROOM.items() for name in names}
_ROOM_OF_NAME |= dict.fromkeys(_DTYPES, "types")

__all__ = [*_ROOM_OF_NAME, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"opkernel.{name}")
    room = _ROOM_OF_NAME.get(name)
    if room is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if room == "graph":  # the runtime folds constants for the shapes of graphs
        importlib.import_module("opkernel.runtime")
    found = "bool_" if name == "bool" else name  # the builtin keeps its name there
    value = globals()[name] = getattr(importlib.import_module(f"opkernel.{room}"), found)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
