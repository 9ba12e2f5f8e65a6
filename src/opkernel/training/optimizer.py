"""Optimizer: what all optimisers have in common; each is a thin object over its Apply ops.

Source: TensorFlow python/keras/optimizer_v2/optimizer_v2.py; Keras 3 keras/src/optimizers/base_optimizer.py.
"""

from __future__ import annotations

import abc
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.checkpoint import load_checkpoint
from opkernel.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
from opkernel.gradients import IndexedSlicesValue
from opkernel.graph import Tensor, function
from opkernel.graph.core.default_graph import innermost_default
from opkernel.graph.tracing.tensor_spec import spec_of
from opkernel.messages import short_repr
from opkernel.tracebacks import entrances
from opkernel.training.earlier_slots import EarlierSlots, SlotReader
from opkernel.training.variable import Variable, assign_saved
from opkernel.training.variable_gradients import listed_variables, value_and_grad, with_outputs
from opkernel.types import DataType, PartialTensorShape

__all__ = ["LearningRate", "Optimizer"]

_MAX_STEPS = 16
LearningRate = float | Callable[[Any], Any]
"""A learning rate: a number, or a function of the number of steps taken."""


@entrances
class Optimizer(abc.ABC):
    """An optimiser.

        optimizer = opkernel.optimizers.Adam(1e-3)
        for x, y in batches:
            loss = optimizer.minimize(loss_fn, model, x, y)

    Args:
        learning_rate: How far a step goes: a number, or a function of the number of steps taken, which is a float32
            scalar and 0 at the first step. It is traced where steps are.

    Attributes:
        iterations: The number of steps taken.

    Raises:
        InvalidArgumentError: an argument is no number, or is out of its range.
    """

    def __init__(self, learning_rate: LearningRate) -> None:
        self._schedule = learning_rate if callable(learning_rate) else None
        rate = 0.0 if callable(learning_rate) else checked_number("learning_rate", learning_rate)
        self.iterations = Variable(np.int64(0), trainable=False, name="iteration")
        self._learning_rate = Variable(np.float32(rate), trainable=False, name="learning_rate")
        self._slots: dict[Variable, dict[str, Variable]] = {}
        self._steps: OrderedDict[Any, Any] = OrderedDict()

    @property
    def learning_rate(self) -> float:
        """How far the next step goes; it may be set between steps, unless a function of steps gives it.

        Raises:
            FailedPreconditionError: at setting, a function of steps gives it.
        """
        return float(self._rate())

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        if self._schedule is not None:
            raise FailedPreconditionError(
                f"The learning rate of this {type(self).__name__} is a function of steps, and cannot be set"
            )
        self._learning_rate.assign(np.float32(checked_number("learning_rate", value)))

    def _rate(self) -> Any:
        """The learning rate of the next step: a float32 scalar.

        Raises:
            InvalidArgumentError: the function of steps gives something else.
        """
        if self._schedule is None:
            return self._learning_rate.value
        rate = self._schedule(_cast(self.iterations.value, DataType.DT_FLOAT))
        if not isinstance(rate, Tensor):
            return np.float32(checked_number("learning_rate", rate))
        if rate.shape.rank not in (0, None) or not (
            rate.dtype.is_floating or rate.dtype.is_integer
        ):
            raise InvalidArgumentError(f"learning_rate must be a number, not {short_repr(rate)}")
        return _cast(rate, DataType.DT_FLOAT)

    # What a kind of optimiser says.

    def slot_values(self, variable: Variable) -> dict[str, Any]:
        """The first values of the slots of a variable, by name: zeros for all that are saved, unless a kind says more."""
        return {name: filled(variable) for group in self.saved_slots() for name in group}

    @abc.abstractmethod
    def saved_slots(self) -> Sequence[Mapping[str, str]]:
        """The names of slots, with those of the lists that Keras saves them in.

        Keras lists slots of one mapping variable by variable, and then those of the next mapping.
        """

    @abc.abstractmethod
    def _apply(self, step: OptimizerStep, variable: Variable, grad: Any) -> None:
        """Change a variable and its slots by a gradient."""

    def _apply_slices(
        self, step: OptimizerStep, variable: Variable, slices: IndexedSlicesValue
    ) -> None:
        """The same, for the gradient of some rows."""
        rows = raw_ops.VariableShape(input=variable.handle)[0]  # without a reference to the value
        dense = raw_ops.UnsortedSegmentSum(
            data=slices.values, segment_ids=slices.indices, num_segments=rows
        )
        self._apply(step, variable, dense)

    # What users call.

    def minimize(
        self, loss_fn: Callable[..., Any], variables: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Take one step that makes a loss smaller.

        Args:
            loss_fn: Gives the loss, from `args`. It is traced: with arguments once for their types and shapes,
                without any at each call, since what it takes from around it may have changed.
            variables: The variables to change, or an object with `trainable_variables`.
            args: The arguments of `loss_fn`: a batch.
            kwargs: The same by keyword.

        Returns:
            What `loss_fn` gives, before the step.

        Raises:
            InvalidArgumentError: there are no variables, or the loss depends on none of them.
            TypeError: the loss is no tensor.
        """
        found = listed_variables(variables)
        self.build(found)
        if not args and not kwargs:
            return self._step_of(loss_fn, found)()
        # A method is another Function at each look-up, of the same Python function.
        key = getattr(loss_fn, "python_function", loss_fn), tuple(found)
        step = self._steps.get(key)
        if step is None:
            step = self._steps[key] = self._step_of(loss_fn, found)
            if len(self._steps) > _MAX_STEPS:
                self._steps.popitem(last=False)
        return step(*args, **kwargs)

    def apply_gradients(self, grads_and_variables: Iterable[tuple[Any, Variable]]) -> None:
        """Take one step with gradients that were computed before.

        Args:
            grads_and_variables: Gradients, each with its variable; None for a variable that stays.

        Raises:
            InvalidArgumentError: no variable has a gradient, or a gradient has another type or shape than its
                variable. No variable is changed then.
        """
        pairs = [_checked(*_pair(one)) for one in grads_and_variables]
        pairs = [(grad, variable) for grad, variable in pairs if grad is not None]
        if not pairs:
            raise InvalidArgumentError(
                "No variable has a gradient: the loss depends on none of them"
            )
        self.build([variable for _, variable in pairs])
        step = OptimizerStep(self.iterations, self._rate())
        for grad, variable in pairs:
            if isinstance(grad, IndexedSlicesValue):
                self._apply_slices(step, variable, grad)
            else:
                self._apply(step, variable, grad)
        self.iterations.assign_add(np.int64(1))

    def build(self, variables: Iterable[Variable]) -> None:
        """Make the slots of variables that have none yet; outside of functions.

        Variables of integers, strings and bools get none: no loss has a gradient with respect to them.

        Raises:
            FailedPreconditionError: a function is being traced.
            InvalidArgumentError: a variable cannot be trained by this optimiser.
        """
        for variable in variables:
            has_gradients = variable.dtype.is_floating or variable.dtype.is_complex
            if variable not in self._slots and has_gradients:
                values = self.slot_values(variable)
                if values and innermost_default() is not None:
                    raise FailedPreconditionError(
                        f"{type(self).__name__} has no slots of {variable.name!r} yet, and a function cannot make "
                        f"them: call optimizer.build(variables) before the function is traced"
                    )
                self._slots[variable] = {
                    name: Variable(value, trainable=False, name=f"{variable.name}_{name}")
                    for name, value in values.items()
                }

    def restore(
        self, path: str | os.PathLike[str], variables: Any, *, name: str | None = None
    ) -> None:
        """Take over the slots and the number of steps of an optimiser of TF1 or Keras 2.

        Checkpoints of Keras 3 and of opkernel are restored by `opkernel.Checkpoint`.

        Args:
            path: The checkpoint of a TF1 Saver, or of a `tf.train.Checkpoint`.
            variables: The variables, or an object with `trainable_variables`; or a mapping of them by their names
                (of a Saver) or paths (`model/kernel`) in the checkpoint. Without one, names are those of the
                variables, and paths those in the object.
            name: The name of the optimiser in the checkpoint: `Adam` in `w/Adam_1`, or its path.

        Raises:
            NotFoundError: there is no checkpoint, or it lacks a slot.
            InvalidArgumentError: a value has another type or shape than the slot; nothing is restored then.
            UnimplementedError: this kind of optimiser has no such slots.
        """
        with load_checkpoint(path) as reader:
            slots = SlotReader(reader, self.earlier_slots(), name)
            named = _named(variables, slots.has_objects)
            found = {variable: slots.values(key) for key, variable in named.items()}
            iterations = slots.iterations()
        self.build(found)
        values = [
            (self.slot(variable, slot), value)
            for variable, of_slots in found.items()
            for slot, value in of_slots.items()
        ]
        assign_saved("Slot", values)
        if iterations is not None:
            self.iterations.assign(np.int64(iterations))

    def earlier_slots(self) -> EarlierSlots:
        """What TF1 and Keras 2 call the optimiser and its slots.

        Raises:
            UnimplementedError: nothing is known of that.
        """
        raise UnimplementedError(f"{type(self).__name__} has no slots of TF1 or Keras 2")

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
        """All its state: the number of steps, the learning rate unless a function gives it, the slots."""
        slots = [slot for slots in self._slots.values() for slot in slots.values()]
        return [self.iterations, *self._rates(), *slots]

    def __repr__(self) -> str:
        """Its arguments, the number of steps taken, and the slots that each variable has."""
        rate = f"{self.learning_rate:g}" if self._schedule is None else short_repr(self._schedule)
        options = [
            f", {name}={value!r}"
            for name, value in vars(self).items()
            if isinstance(value, bool | float) and name[:1] != "_"
        ]
        return (
            f"<opkernel.optimizers.{type(self).__name__}(learning_rate={rate}{''.join(options)}), "
            f"steps: {int(self.iterations)}, variables: {len(self._slots)}, "
            f"slots: {', '.join(self.slot_names) or 'none'}>"
        )

    def _rates(self) -> list[Variable]:
        return [self._learning_rate] if self._schedule is None else []

    def _tracked_children(self) -> dict[str, Any]:
        """Its state, by the names by which Keras 3 saves that of its optimisers."""
        slots = [
            self._slots[variable][name]
            for group in self.saved_slots()
            for variable in self._slots
            for name in group
        ]
        names = {name: saved for group in self.saved_slots() for name, saved in group.items()}
        return {
            "_variables": [self.iterations, *self._rates(), *slots],
            "_trainable_variables": [*self._slots],
            "_trainable_variables_indices": {},
            "_iterations": self.iterations,
            **dict(zip(["_learning_rate"], self._rates(), strict=False)),
            **{
                saved: [slots[name] for slots in self._slots.values()]
                for name, saved in names.items()
            },
        }

    def __getstate__(self) -> dict[str, Any]:
        """What copies take over: not the traced steps."""
        return {**self.__dict__, "_steps": OrderedDict()}

    def _step_of(self, loss_fn: Callable[..., Any], variables: Sequence[Variable]) -> Any:
        """The function of one step."""
        with_grads = value_and_grad(loss_fn, variables)

        def step(*args: Any, **kwargs: Any) -> Any:
            value, grads = with_grads(*args, **kwargs)
            self.apply_gradients(zip(grads, variables, strict=True))
            return value

        return function(step, name="minimize")


class OptimizerStep:
    """The numbers of one step of an optimiser, each computed once for each type of variables.

    Attributes:
        rate: The learning rate in a type.
        power: In a type, a base to the number of this step, which is 1 for the first.
    """

    def __init__(self, iterations: Variable, learning_rate: Any) -> None:
        self.rate = cache(partial(_cast, learning_rate))
        self.power = cache(partial(_power, iterations))


def _power(iterations: Variable, dtype: DataType, base: float) -> Any:
    number = _cast(iterations.value, dtype) + scalar(dtype, 1)
    return raw_ops.Pow(x=scalar(dtype, base), y=number)


def scalar(dtype: DataType, value: float) -> Any:
    """A number of a type."""
    return np.asarray(value, dtype.numpy_dtype)


def filled(variable: Variable, value: float = 0.0) -> Any:
    """An array like the value of a variable, filled with a number."""
    return np.full_like(variable.numpy(), value)


def checked_number(name: str, value: Any, least: float = -np.inf, most: float = np.inf) -> float:
    """An argument that is a number in a range.

    Raises:
        InvalidArgumentError: it is something else.
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"{name} must be a number, not {short_repr(value)}") from None
    if not least <= number <= most:
        bound = (
            f"at least {least:g}"
            if most == np.inf
            else f"at most {most:g}"
            if least == -np.inf
            else f"between {least:g} and {most:g}"
        )
        raise InvalidArgumentError(f"{name} must be {bound}, not {number:g}")
    return number


def _named(variables: Any, by_path: bool) -> dict[str, Variable]:
    """Variables by their names or paths in a checkpoint."""
    if isinstance(variables, Mapping):
        return dict(variables)
    found = listed_variables(variables)
    if by_path and hasattr(variables, "named_variables"):
        chosen = {*found}
        return {path: one for path, one in variables.named_variables.items() if one in chosen}
    named = {variable.name.removesuffix(":0"): variable for variable in found}
    if len(named) < len(found):
        raise InvalidArgumentError("Several variables have the same name: give a mapping by name")
    return named


def _pair(one: Any) -> tuple[Any, Variable]:
    if isinstance(one, tuple | list) and len(one) == 2 and isinstance(one[1], Variable):
        return one[0], one[1]
    raise InvalidArgumentError(
        f"apply_gradients takes pairs of a gradient and its Variable, not {short_repr(one)}"
    )


def _checked(grad: Any, variable: Variable) -> tuple[Any, Variable]:
    """A gradient that fits its variable.

    Raises:
        InvalidArgumentError: its type or shape is another.
    """
    if grad is None:
        return None, variable
    grad = grad.value if isinstance(grad, Variable) else with_outputs(grad)
    is_sparse = isinstance(grad, IndexedSlicesValue)
    if not is_sparse and spec_of(grad) is None:
        grad = np.asarray(grad, variable.dtype.numpy_dtype)
    spec: Any = spec_of(grad.values if is_sparse else grad)
    shape, wanted = (
        (_row(spec.shape), _row(variable.shape)) if is_sparse else (spec.shape, variable.shape)
    )
    if spec.dtype != variable.dtype or not shape.is_compatible_with(wanted):
        raise InvalidArgumentError(
            f"Variable {variable.name!r} is {variable.dtype.tf_name}{variable.shape}, and its gradient "
            f"{'has rows of ' if is_sparse else ''}{spec.dtype.tf_name}{shape}"
        )
    return grad, variable


def _row(shape: PartialTensorShape) -> PartialTensorShape:
    return PartialTensorShape(None if shape.dims is None else shape.dims[1:])


def _cast(value: Any, dtype: DataType) -> Any:
    return value if value.dtype == dtype else raw_ops.Cast(x=value, DstT=dtype)
