"""Elements that functions give, without an input: GeneratorDataset.

Source: TensorFlow core/kernels/data/generator_dataset_op.cc.
"""

from __future__ import annotations

from opkernel.errors import OutOfRangeError
from opkernel.kernel import Step
from opkernel.ops.data.dataset import DatasetBase, DatasetIterator, Element
from opkernel.ops.data.dataset_op import DatasetNode, dataset_op

__all__ = ["GeneratorDataset"]


class _GeneratorIterator(DatasetIterator):
    """Makes a state, asks for elements with it until there are none, and ends the state."""

    state = ("carried", "is_over")

    def start(self) -> None:
        self.carried: Element | None = None
        self.is_over = False
        self._step: Step | None = None

    def next(self, step: Step) -> Element | None:
        dataset, self._step = self.dataset, step
        if self.is_over:
            return None
        if self.carried is None:
            self.carried = dataset.init_func(step, ())
        try:
            element: Element = dataset.next_func.within(step, self.carried)
        except OutOfRangeError:
            self.close()
            return None
        return element

    def close(self) -> None:
        """End the state of a pass that has begun."""
        if self.carried is not None and self._step is not None and not self.is_over:
            self.is_over = True
            self.dataset.finalize_func(self._step, self.carried)


@dataset_op(
    "GeneratorDataset",
    doc="The results of `next_func` for the state that `init_func` gives, until it runs out of range.",
)
class GeneratorDataset(DatasetBase):
    """What a function gives, call by call."""

    iterator_type = _GeneratorIterator

    def __init__(self, node: DatasetNode) -> None:
        super().__init__(node.dtypes, node.shapes)
        self.init_func = node.function("init_func", "init_func_other_args", ())
        state = self.init_func.gives
        self.next_func = node.function("next_func", "next_func_other_args", state, node.dtypes)
        self.finalize_func = node.function("finalize_func", "finalize_func_other_args", state)
