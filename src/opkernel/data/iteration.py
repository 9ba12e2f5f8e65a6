"""Iteration over a dataset in Python: its elements as arrays, one by one.

Source: OwnedIterator in TensorFlow python/data/ops/iterator_ops.py.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from opkernel.data.structure import Pack
from opkernel.device.local_device import eager_device
from opkernel.device.permissions import OWN_CODE
from opkernel.errors import InvalidArgumentError, OutOfRangeError
from opkernel.messages import short_repr
from opkernel.ops.data.dataset import DatasetBase, Turns
from opkernel.ops.data.iterator_state import IteratorState, restore_iterator, save_iterator
from opkernel.runtime.program.error_report import raise_reported
from opkernel.runtime.program.feeds_and_fetches import owned_of
from opkernel.runtime.program.run_step import RunStep, SessionServices


class DatasetIterator:
    """A pass over a dataset: `for element in dataset` makes one.

    Elements are computed on the thread that asks for them. `save` and `restore` take up a pass again.

    Args:
        dataset: The dataset.
        spec: The spec of its elements.
        pack: Gives the components of an element their structure.

    Attributes:
        element_spec: The spec of the elements.
    """

    _is_closed = False

    def __init__(self, dataset: DatasetBase, spec: Any, pack: Pack) -> None:
        self.element_spec = spec
        self._dataset, self._pack = dataset, pack
        self._finish = [(i, owned_of(dtype)) for i, dtype in enumerate(dataset.dtypes)]
        cleanup = eager_device().resource_manager.cleanup
        services = SessionServices(cleanup=cleanup, program_permissions=OWN_CODE)
        self._step = RunStep(session=services)
        self._iterator: Any = dataset.iterator()
        self._turns = Turns()

    def __repr__(self) -> str:
        return f"<opkernel.data.DatasetIterator element_spec={self.element_spec}>"

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        """The next element.

        Raises:
            StopIteration: there is none, or the pass was closed.
            OpError: it cannot be computed.
        """
        try:
            with np.errstate(all="ignore"), self._turns.turn(self._step):
                element = None if self._is_closed else self._iterator.next(self._step)
        except Exception as error:
            raise_reported(error)
        if element is None:
            raise StopIteration
        components = list(element)
        del element  # so that what nobody else has is not copied
        return self._pack([finish(components, index) for index, finish in self._finish])

    def get_next(self) -> Any:
        """The next element.

        Raises:
            OutOfRangeError: there is none.
        """
        try:
            return next(self)
        except StopIteration:
            raise OutOfRangeError("End of sequence") from None

    def save(self) -> IteratorState:
        """How far the pass is, for `restore`."""
        with self._turns.turn(self._step):
            return IteratorState(save_iterator(self._iterator))

    def restore(self, state: IteratorState) -> None:
        """Go on where a pass over the same dataset was saved.

        Raises:
            InvalidArgumentError: the state is that of another dataset's iterator.
        """
        if not isinstance(state, IteratorState):
            raise InvalidArgumentError(f"restore takes what save gives, not {short_repr(state)}")
        iterator = self._dataset.iterator()
        with self._turns.turn(self._step):
            restore_iterator(iterator, state.saved, self._step)
            self._iterator.close()
            self._iterator = iterator

    def close(self) -> None:
        """Give back files; the pass is over."""
        self._is_closed = True
        self._iterator.close()
        self._step.end()

    def __del__(self) -> None:
        if hasattr(self, "_iterator"):
            self.close()
