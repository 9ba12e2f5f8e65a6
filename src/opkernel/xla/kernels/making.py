"""Tensors made from a few numbers: Empty, LinSpace."""

from __future__ import annotations

from typing import Any

from opkernel.errors import InvalidArgumentError
from opkernel.ops.array.fill import checked_count
from opkernel.ops.array.in_place import empty
from opkernel.types import TensorShape
from opkernel.xla.register_kernel import register_xla_kernel

register_xla_kernel("Empty", compile_time_constants=["shape"], factory=True)(empty)


@register_xla_kernel("LinSpace", compile_time_constants=["num"])
def lin_space(start: Any, stop: Any, num: Any, *, xp: Any) -> Any:
    for name, value in (("start", start), ("stop", stop), ("num", num)):
        if value.ndim != 0:
            raise InvalidArgumentError(
                f"{name} must be a scalar, not shape {TensorShape(value.shape)}"
            )
    size = checked_count(num)
    if size == 1:
        return start[None]
    place = xp.arange(size)
    step = (stop - start) / (size - 1)
    between = start + step * place.astype(start.dtype)
    return xp.where(place == 0, start, xp.where(place == size - 1, stop, between))
