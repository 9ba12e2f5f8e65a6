"""Gradients of a tensor that several operations use: their sum.

Source: _AggregatedGrads of TensorFlow python/ops/gradients_util.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from opkernel.gradients.indexed_slices import Gradient, IndexedSlices, as_dense, sum_of_slices
from opkernel.gradients.node_methods import nodes
from opkernel.graph import Tensor
from opkernel.messages import short_repr


def _add_n(gradients: list[Tensor]) -> Tensor:
    """All at once."""
    total: Tensor = nodes.AddN(gradients)
    return total


def _tree(gradients: list[Tensor]) -> Tensor:
    """One after the other, so that each can be dropped early."""
    total = gradients[0]
    for gradient in gradients[1:]:
        total = nodes.AddN([total, gradient])
    return total


AGGREGATION_METHODS: dict[str, Callable[[list[Tensor]], Tensor]] = {
    "add_n": _add_n,
    "experimental_tree": _tree,
    "experimental_accumulate_n": _tree,
}
"""How gradients are added, by the names of TensorFlow's AggregationMethod."""


class Accumulation:
    """The gradients that were found so far, by tensor."""

    def __init__(self, method: str) -> None:
        """With a method of `AGGREGATION_METHODS`; ValueError if there is no such method."""
        if method not in AGGREGATION_METHODS:
            raise ValueError(
                f"aggregation_method must be one of {list(AGGREGATION_METHODS)}, not {short_repr(method)}"
            )
        self._add = AGGREGATION_METHODS[method]
        self._gradients: dict[Tensor, list[Gradient]] = {}

    def note(self, tensor: Tensor, gradient: Gradient) -> None:
        """Add to the gradient of a tensor."""
        self._gradients.setdefault(tensor, []).append(gradient)

    def total(self, tensor: Tensor) -> Gradient | None:
        """The gradient of a tensor; None where none was noted."""
        found = self._gradients.get(tensor)
        if found is None:
            return None
        if len(found) > 1:
            found[:] = [self._sum(found)]
        return found[0]

    def _sum(self, gradients: Sequence[Gradient]) -> Gradient:
        slices = [g for g in gradients if isinstance(g, IndexedSlices)]
        if len(slices) == len(gradients):
            return sum_of_slices(slices)
        return self._add([as_dense(gradient) for gradient in gradients])
