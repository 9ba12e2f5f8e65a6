"""A dataset of the elements that a Python generator gives.

Source: from_generator_op in TensorFlow python/data/ops/from_generator_op.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from opkernel.data.component_specs import Spec, encoded, spec_of_component
from opkernel.data.composite_values import composite_of, is_composite
from opkernel.data.structure import flat_specs, types_and_shapes, types_of
from opkernel.errors import InvalidArgumentError, OpError, error_of_function
from opkernel.graph import TensorSpec
from opkernel.graph.core.graph import DEFAULT_GRAPHS
from opkernel.graph.tracing.nested_structure import flatten_up_to
from opkernel.interrupts import setting
from opkernel.kernel import Step
from opkernel.messages import short_repr
from opkernel.ops.data.dataset import DatasetBase, DatasetIterator, Element
from opkernel.runtime.program.feeds_and_fetches import string_array
from opkernel.types import (
    DataType,
    PartialTensorShape,
    Variant,
    array_from_python,
    object_scalar,
)


class _PythonIterator(DatasetIterator):
    """Has no state that can be saved: Python's generators have none."""

    def start(self) -> None:
        self._values: Iterator[Any] | None = None

    def next(self, step: Step) -> Element | None:
        dataset = self.dataset
        try:
            if self._values is None:
                self._values = iter(dataset.generator(*dataset.args))
            value = next(self._values)
        except StopIteration:
            return None
        except OpError:
            raise
        except Exception as error:
            raise error_of_function(error) from error
        element: Element = dataset.converted(value)
        return element


class PythonGeneratorDataset(DatasetBase):
    """What a generator gives.

    Args:
        generator: Called at the beginning of each pass.
        args: Its arguments.
        spec: The spec of the elements.
    """

    iterator_type = _PythonIterator

    def __init__(self, generator: Callable[..., Any], args: tuple[Any, ...], spec: Any) -> None:
        self._specs = flat_specs(spec)
        known = types_and_shapes(spec)
        super().__init__(known["output_types"], known["output_shapes"])
        self.generator, self.args, self._spec = generator, args, spec

    def converted(self, value: Any) -> Element:
        """A value as an element.

        Raises:
            InvalidArgumentError: it has another structure, type or shape.
        """
        try:
            parts = flatten_up_to(self._spec, value)
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(
                f"`generator` yielded an element that did not match the expected structure. The "
                f"expected structure was {self._spec}, but the yielded element was {short_repr(value)}."
            ) from error
        pairs = zip(parts, self._specs, strict=True)
        with setting({DEFAULT_GRAPHS: ()}):  # it runs at once, also while a graph is built
            carriers = [_carrier(part, one) for part, one in pairs]
        return tuple([object_scalar(c) if isinstance(c, Variant) else c for c in carriers])


def _carrier(value: Any, spec: Spec) -> Any:
    """The tensor that carries a component of a spec."""
    if not isinstance(spec, TensorSpec) and is_composite(value):
        return _encoded(value, spec)
    array = _array(value, spec.dtype)
    if not spec.shape.is_compatible_with(PartialTensorShape(array.shape)):
        raise InvalidArgumentError(
            f"`generator` yielded an element of shape {array.shape} where an element of "
            f"shape {spec.shape} was expected."
        )
    return encoded(spec, array)


def _encoded(value: Any, spec: Spec) -> Any:
    component = composite_of(value)
    found = spec_of_component(component)
    if types_of(found) != types_of(spec) or not spec.shape.is_compatible_with(found.shape):
        raise InvalidArgumentError(
            f"`generator` yielded an element of {found} where one of {spec} was expected."
        )
    return encoded(spec, component)


def _array(value: Any, dtype: Any) -> Any:
    try:
        if dtype is DataType.DT_STRING:
            return string_array(value)
        return array_from_python(value, dtype)
    except (TypeError, ValueError, OpError) as error:
        raise InvalidArgumentError(
            f"`generator` yielded an element that could not be converted to the expected type. The "
            f"expected type was {dtype.tf_name}, but the yielded element was {short_repr(value)}."
        ) from error
