"""Gradients: which function gives the gradients of an op, and the gradients of whole graphs.

`opkernel.gradients(ys, xs)` is the function and this room at once: the module can be called.

Source: TensorFlow python/ops/gradients_util, control_flow_state, while_v2, cond_v2, common_runtime/gradients.
"""

import sys
from types import ModuleType
from typing import Any

from opkernel.lazy_exports import lazy_exports
from opkernel.tracebacks import entrance

__getattr__, __dir__, __all__ = lazy_exports(__name__)


class _Room(ModuleType):
    """A module that is called as the function `gradients`."""

    @entrance
    def __call__(self, *args: Any, **keywords: Any) -> list[Any]:
        from opkernel.gradients.derivatives import gradients as add_gradients

        return add_gradients(*args, **keywords)


gradients = sys.modules[__name__]
gradients.__class__ = _Room
