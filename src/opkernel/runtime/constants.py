"""Values of tensors that depend on constants alone, for shape inference.

Source: EvaluateConstantTensor in TensorFlow core/common_runtime/eval_const_tensor.cc.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from opkernel.errors import OpError
from opkernel.graph import Tensor
from opkernel.kernel import allocation_limit
from opkernel.runtime.device import CPU
from opkernel.runtime.functions import FunctionLibraryRuntime
from opkernel.runtime.kernels import KernelCache
from opkernel.runtime.plan import compile_plan
from opkernel.runtime.prune import prune_and_order
from opkernel.runtime.step import RunStep

__all__ = ["constant_value"]

_MAX_NODES = 100
_MAX_BYTES = 10 << 20


def constant_value(
    tensor: Tensor, known: Mapping[Tensor, np.ndarray[Any, Any]]
) -> np.ndarray[Any, Any] | None:
    """The value of a tensor, if a few stateless nodes compute it from constants and `known`."""
    try:
        feeds = list(known)
        order = prune_and_order([tensor], [], feeds)
        if len(order) > _MAX_NODES or any(op.op_def.is_stateful for op in order):
            return None
        graph = tensor.graph
        version = graph.graph_def_versions.producer
        kernels = KernelCache(version, graph.op_registry)
        library = FunctionLibraryRuntime(graph, version, CPU)
        plan = compile_plan(order, feeds, [tensor], kernels, library)
        with np.errstate(all="ignore"), allocation_limit(_MAX_BYTES):
            return np.asarray(plan.run(RunStep(), *known.values())[0])
    except (OpError, ValueError, TypeError, IndexError, MemoryError):
        return None  # the step that runs the node will say what is wrong
