"""Single ops in compiled functions."""

from typing import Any

import opkernel
from opkernel import raw_ops

JIT = True
"""Whether the functions are marked to be compiled; without marks, kernels of the CPU compute each op."""


def compiled(op: str, /, *inputs: Any, **fixed: Any) -> Any:
    """The outputs of an op that takes values of the program, then constants and attrs by name."""

    @opkernel.function(jit_compile=JIT)
    def run(*tensors: Any) -> Any:
        names = [name for name in _names(op) if name not in fixed]
        return getattr(raw_ops, op)(**dict(zip(names, tensors, strict=True)), **fixed)

    found = run(*inputs)
    return tuple(map(_array, found)) if isinstance(found, tuple | list) else _array(found)


def _names(op: str) -> list[str]:
    op_def = opkernel.opdef.global_op_registry().look_up_op_def(op)
    return [arg.name for arg in op_def.input_arg]


def _array(tensor: Any) -> Any:
    return tensor.numpy() if hasattr(tensor, "numpy") else tensor
