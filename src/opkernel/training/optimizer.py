"""Optimizer: what all optimisers have in common; each is a thin object over its Apply ops.

Source: TensorFlow python/keras/optimizer_v2/optimizer_v2.py; Keras 3 keras/src/optimizers/base_optimizer.py.
"""

from __future__ import annotations

import abc
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.graph import function
from opkernel.training.variable import Variable
from opkernel.training.variable_gradients import Slices, listed_variables, value_and_grad
from opkernel.types import DataType

__all__ = ["Optimizer"]


class Optimizer(abc.ABC):
    """An optimiser.

        optimizer = opkernel.optimizers.Adam(1e-3)
        for x, y in batches:
            loss = optimizer.minimize(loss_fn, model, x, y)

    Args:
        learning_rate: How far a step goes.

    Attributes:
        iterations: The number of steps taken.
    """

    def __init__(self, learning_rate: float) -> None:
        self.iterations = Variable(np.int64(0), trainable=False, name="iterations")
        self._learning_rate = Variable(
            np.float32(learning_rate), trainable=False, name="learning_rate"
        )
        self._slots: dict[Variable, dict[str, Variable]] = {}
        self._steps: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()

    @property
    def learning_rate(self) -> float:
        """How far a step goes; it may be set between steps."""
        return float(self._learning_rate)

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        self._learning_rate.assign(np.float32(value))

    # What a kind of optimiser says.

    @abc.abstractmethod
    def slot_values(self, variable: Variable) -> dict[str, Any]:
        """The first values of the slots of a variable, by name."""

    @abc.abstractmethod
    def _apply(self, variable: Variable, grad: Any) -> None:
        """Change a variable and its slots by a gradient."""

    def _apply_slices(self, variable: Variable, slices: Slices) -> None:
        """The same, for the gradient of some rows."""
        self._apply(variable, _dense(variable, slices))

    # What users call.

    def minimize(self, loss_fn: Callable[..., Any], variables: Any, *args: Any) -> Any:
        """Take one step that makes a loss smaller.

        Args:
            loss_fn: Gives the loss, from `args`. It is traced: with `args` once for their types and shapes,
                without any at each call, since what it takes from around it may have changed.
            variables: The variables to change, or an object with `trainable_variables`.
            args: The arguments of `loss_fn`: a batch.

        Returns:
            What `loss_fn` gives, before the step.
        """
        found = listed_variables(variables)
        self.build(found)
        if not args:
            return self._step_of(loss_fn, found)()
        known = self._steps.setdefault(loss_fn, {})
        step = known.get(tuple(found))
        if step is None:
            step = known[tuple(found)] = self._step_of(loss_fn, found)
        return step(*args)

    def apply_gradients(self, grads_and_variables: Iterable[tuple[Any, Variable]]) -> None:
        """Take one step with gradients that were computed before.

        Args:
            grads_and_variables: Gradients, each with its variable; None for a variable that stays.

        Raises:
            InvalidArgumentError: no variable has a gradient.
        """
        pairs = [(grad, variable) for grad, variable in grads_and_variables if grad is not None]
        if not pairs:
            raise InvalidArgumentError(
                "No variable has a gradient: the loss depends on none of them"
            )
        self.build([variable for _, variable in pairs])
        for grad, variable in pairs:
            if isinstance(grad, Slices):
                self._apply_slices(variable, grad)
            else:
                self._apply(variable, grad)
        self.iterations.assign_add(np.int64(1))

    def build(self, variables: Iterable[Variable]) -> None:
        """Make the slots of variables that have none yet; outside of functions."""
        for variable in variables:
            if variable not in self._slots:
                self._slots[variable] = {
                    name: Variable(value, trainable=False, name=f"{variable.name}/{name}")
                    for name, value in self.slot_values(variable).items()
                }

    def slot(self, variable: Variable, name: str) -> Variable:
        """A slot: what the optimiser keeps for a variable.

        Raises:
            InvalidArgumentError: there is no such slot.
        """
        slots = self._slots.get(variable, {})
        if name not in slots:
            raise InvalidArgumentError(
                f"{type(self).__name__} has no slot {name!r} of {variable.name!r}"
            )
        return slots[name]

    @property
    def slot_names(self) -> list[str]:
        """The names of the slots that each variable has."""
        return [*next(iter(self._slots.values()), {})]

    @property
    def variables(self) -> list[Variable]:
        """All its state: the number of steps, the learning rate, the slots."""
        slots = [slot for slots in self._slots.values() for slot in slots.values()]
        return [self.iterations, self._learning_rate, *slots]

    def _tracked_children(self) -> dict[str, Any]:
        """Its state, by the names by which it is saved."""
        slots = [dict(slots) for slots in self._slots.values()]
        return {
            "iterations": self.iterations,
            "_learning_rate": self._learning_rate,
            "_slots": slots,
        }

    def _step_of(self, loss_fn: Callable[..., Any], variables: Sequence[Variable]) -> Any:
        """The function of one step."""
        with_grads = value_and_grad(loss_fn, variables)

        def step(*args: Any) -> Any:
            value, grads = with_grads(*args)
            self.apply_gradients(zip(grads, variables, strict=True))
            return value

        return function(step, name="minimize")

    def _rate(self, variable: Variable) -> Any:
        """The learning rate, of the variable's type."""
        return _cast(self._learning_rate.value, variable.dtype)

    def _number(self, variable: Variable, value: float) -> Any:
        """A number of the variable's type."""
        return np.asarray(value, variable.dtype.numpy_dtype)

    def _power(self, variable: Variable, base: float) -> Any:
        """`base` to the number of this step."""
        step = _cast(self.iterations.value, variable.dtype) + self._number(variable, 1)
        return raw_ops.Pow(x=self._number(variable, base), y=step)


def _cast(value: Any, dtype: DataType) -> Any:
    return value if value.dtype == dtype else raw_ops.Cast(x=value, DstT=dtype)


def _dense(variable: Variable, slices: Slices) -> Any:
    """A gradient with all rows."""
    rows = raw_ops.Shape(input=variable.value)[0]
    return raw_ops.UnsortedSegmentSum(
        data=slices.values, segment_ids=slices.indices, num_segments=rows
    )
