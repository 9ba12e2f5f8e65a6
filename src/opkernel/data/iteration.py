"""Iteration over a dataset: in Python, its elements as arrays, one by one; in graphs, as tensors.

Source: OwnedIterator and Iterator in TensorFlow python/data/ops/iterator_ops.py, optional_ops.py.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from opkernel.data.structure import Pack, flat_specs, types_and_shapes
from opkernel.data.structured_function import call_op
from opkernel.device.local_device import eager_device
from opkernel.device.permissions import OWN_CODE
from opkernel.errors import FailedPreconditionError, InvalidArgumentError, OutOfRangeError
from opkernel.graph import Operation
from opkernel.graph.core.default_graph import innermost_default
from opkernel.graph.tracing.nested_structure import structure_of
from opkernel.kernel import make_ref_counting_handle, tensor_of_handle
from opkernel.messages import short_repr
from opkernel.ops.data.dataset import DatasetBase
from opkernel.ops.data.iterator_resource import IteratorResource
from opkernel.ops.data.iterator_state import IteratorState
from opkernel.runtime.program.error_report import raise_reported
from opkernel.runtime.program.feeds_and_fetches import owned_of
from opkernel.runtime.program.run_step import RunStep, SessionServices
from opkernel.types import DataType, PartialTensorShape

_MOST_UNROLLED = 1000


class Optional:
    """An element, or that there is none; TensorFlow's tf.experimental.Optional.

    Attributes:
        element_spec: The spec of the element.
    """

    def __init__(self, variant_tensor: Any, element_spec: Any, pack: Pack) -> None:
        self.element_spec = element_spec
        self._variant, self._pack = variant_tensor, pack

    def __repr__(self) -> str:
        return f"<opkernel.data.Optional element_spec={self.element_spec}>"

    def has_value(self) -> Any:
        """Whether there is an element, a bool; in graphs, a tensor."""
        return call_op("OptionalHasValue", optional=self._variant)

    def get_value(self) -> Any:
        """The element.

        Raises:
            InvalidArgumentError: there is none.
        """
        spec = self.element_spec
        return self._pack(call_op("OptionalGetValue", optional=self._variant, spec=spec))


class _ElementType:
    """What calls of a function have in common if they pass iterators: the spec of the elements."""

    def __init__(self, spec: Any, pack: Pack) -> None:
        self.spec, self.pack = spec, pack
        self._key = (structure_of(spec), repr(flat_specs(spec)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ElementType) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def next_of(self, handle: Any) -> Any:
        """The next element of the iterator of a handle."""
        return self.pack(call_op("IteratorGetNext", iterator=handle, spec=self.spec))

    def optional_of(self, handle: Any) -> Optional:
        """The next element of the iterator of a handle, if there is one."""
        variant = call_op("IteratorGetNextAsOptional", iterator=handle, spec=self.spec)
        return Optional(variant, self.spec, self.pack)


class Iterator:
    """An iterator of a graph, or one that a traced function has made or was called with.

    Args:
        handle: The tensor of its handle.
        initializer: The operation that lets it begin; None where it has begun.
        element_spec: The spec of the elements.
        pack: Gives the components of an element their structure.
        count: How many elements it has; None where that is not known.

    Attributes:
        element_spec: The argument.
    """

    def __init__(
        self,
        handle: Any,
        initializer: Operation | None,
        element_spec: Any,
        pack: Pack,
        count: int | None = None,
    ) -> None:
        self.element_spec = element_spec
        self._handle, self._initializer = handle, initializer
        self._type = _ElementType(element_spec, pack)
        self._count, self._asked = count, 0

    def __repr__(self) -> str:
        return f"<opkernel.data.Iterator element_spec={self.element_spec}>"

    @property
    def initializer(self) -> Operation:
        """The operation that lets it begin.

        Raises:
            ValueError: it begins by itself.
        """
        if self._initializer is None:
            raise ValueError("Iterator does not have an initializer.")
        return self._initializer

    def get_next(self, name: str | None = None) -> Any:
        """The next element, as tensors; at the end, running them raises an OutOfRangeError."""
        return self._type.next_of(self._handle)

    def get_next_as_optional(self) -> Optional:
        """The next element, or that there is none."""
        return self._type.optional_of(self._handle)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        """As `get_next`. Python's loop over a dataset in a traced function is unrolled by it.

        Raises:
            StopIteration: the dataset is known to have no more elements.
            FailedPreconditionError: the loop would be unrolled too often, or without end.
        """
        if self._asked == self._count:
            raise StopIteration
        if self._asked == _MOST_UNROLLED:
            raise FailedPreconditionError(
                f"A traced function has asked an iterator for {_MOST_UNROLLED} elements one by one: "
                "Python's loop over a dataset is unrolled there. Use `dataset.reduce`, or a "
                "`while_loop` with `get_next_as_optional`"
            )
        self._asked += 1
        return self.get_next()

    def __tf_flatten__(self) -> tuple[_ElementType, tuple[Any]]:
        return self._type, (self._handle,)

    @classmethod
    def __tf_unflatten__(cls, metadata: _ElementType, components: tuple[Any]) -> Iterator:
        return Iterator(components[0], None, metadata.spec, metadata.pack)


def iterator_in_graph(variant_tensor: Any, spec: Any, pack: Pack, count: int | None) -> Any:
    """An iterator that begins in the function that is being traced, at each of its calls."""
    handle = call_op("AnonymousIteratorV3", spec=spec)
    call_op("MakeIterator", dataset=variant_tensor, iterator=handle)
    return Iterator(handle, None, spec, pack, count)


class DatasetIterator:
    """A pass over a dataset: `for element in dataset` makes one.

    `save` and `restore` take up a pass again. Functions that are traced may take it as an argument, or from outside:
    there `next` and `get_next` give tensors.

    Args:
        dataset: The dataset.
        spec: The spec of its elements.
        pack: Gives the components of an element their structure.

    Attributes:
        element_spec: The spec of the elements.
    """

    _is_closed = False

    # As a value that traced functions take from outside (CapturedValue)
    name = "iterator"
    captured_spec = (DataType.DT_RESOURCE, PartialTensorShape([]))
    handle_facts = None

    def __init__(self, dataset: DatasetBase, spec: Any, pack: Pack) -> None:
        self.element_spec = spec
        self._type, self._pack = _ElementType(spec, pack), pack
        self._finish = [(i, owned_of(dtype)) for i, dtype in enumerate(dataset.dtypes)]
        cleanup = eager_device().resource_manager.cleanup
        services = SessionServices(cleanup=cleanup, program_permissions=OWN_CODE)
        self._step = RunStep(session=services)
        known = types_and_shapes(spec)
        self._resource = IteratorResource(known["output_types"], known["output_shapes"])
        self._resource.set_dataset(dataset, self._step)
        handle = make_ref_counting_handle(self._resource, eager_device())
        self.captured_value = tensor_of_handle(handle)

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
        handle = self._handle_in_graph()
        if handle is not None:
            return self._type.next_of(handle)
        try:
            with np.errstate(all="ignore"):
                element = None if self._is_closed else self._resource.get_next(self._step)
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

    def get_next_as_optional(self) -> Optional:
        """The next element, or that there is none."""
        handle = self._handle_in_graph()
        return self._type.optional_of(self.captured_value if handle is None else handle)

    def _handle_in_graph(self) -> Any:
        """The tensor of the handle in the function that is being traced; None outside of functions."""
        graph = innermost_default()
        return graph.tensor_of(self) if graph is not None and graph.building_function else None

    def __tf_flatten__(self) -> tuple[_ElementType, tuple[Any]]:
        return self._type, (self.captured_value,)

    @classmethod
    def __tf_unflatten__(cls, metadata: _ElementType, components: tuple[Any]) -> Iterator:
        return Iterator(components[0], None, metadata.spec, metadata.pack)

    def save(self) -> IteratorState:
        """How far the pass is, for `restore`."""
        return IteratorState(self._resource.save(self._step))

    def restore(self, state: IteratorState) -> None:
        """Go on where a pass over the same dataset was saved.

        Raises:
            InvalidArgumentError: the state is that of another dataset's iterator.
        """
        if not isinstance(state, IteratorState):
            raise InvalidArgumentError(f"restore takes what save gives, not {short_repr(state)}")
        self._resource.restore(state.saved, self._step)

    def close(self) -> None:
        """Give back files, and end threads; the pass is over."""
        self._is_closed = True
        self._resource.on_destroy()
        self._step.end()

    def __del__(self) -> None:
        if hasattr(self, "captured_value"):
            self.close()
