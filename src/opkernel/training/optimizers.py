"""The optimisers: SGD, Adam, AdamW, RMSprop, Adagrad, Ftrl, with the defaults of Keras 3.

Source: TensorFlow core/kernels/training_ops.cc for the steps; Keras 3 keras/src/optimizers for arguments and defaults.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.gradients import IndexedSlicesValue
from opkernel.tracebacks import entrances
from opkernel.training import schedules
from opkernel.training.earlier_slots import EarlierSlots
from opkernel.training.optimizer import (
    LearningRate,
    Optimizer,
    OptimizerStep,
    checked_number,
    filled,
    scalar,
)
from opkernel.training.variable import Variable

__all__ = ["SGD", "Adagrad", "Adam", "AdamW", "Ftrl", "Optimizer", "RMSprop", "schedules"]


@entrances
class SGD(Optimizer):
    """Gradient descent: `w -= learning_rate * g`; with momentum `v = momentum * v - learning_rate * g; w += v`.

    Args:
        learning_rate: How far a step goes: a number, or a function of the number of steps taken.
        momentum: The part of the last step that is taken again.
        nesterov: Look ahead by the momentum: `w += momentum * v - learning_rate * g`.

    Slots: `momentum`, where there is momentum.
    """

    def __init__(
        self, learning_rate: LearningRate = 0.01, momentum: float = 0.0, nesterov: bool = False
    ) -> None:
        super().__init__(learning_rate)
        self.momentum = checked_number("momentum", momentum, 0, 1)
        self.nesterov = nesterov

    def saved_slots(self) -> Sequence[Mapping[str, str]]:
        """The names of the slots, with those of Keras's lists."""
        return [{"momentum": "momentums"}] if self.momentum else []

    def earlier_slots(self) -> EarlierSlots:
        """What TF1 and Keras 2 call the optimiser and its slots."""
        # TF1 multiplies by the learning rate when the slot is applied, and not before.
        slots = {"momentum": "momentum"} if self.momentum else {}
        return EarlierSlots("Momentum", slots, scale=-self.learning_rate)

    def _apply(self, step: OptimizerStep, variable: Variable, grad: Any) -> None:
        rate = step.rate(variable.dtype)
        if not self.momentum:
            raw_ops.ResourceApplyGradientDescent(var=variable.handle, alpha=rate, delta=grad)
            return
        raw_ops.ResourceApplyKerasMomentum(
            var=variable.handle,
            accum=self.slot(variable, "momentum").handle,
            lr=rate,
            grad=grad,
            momentum=scalar(variable.dtype, self.momentum),
            use_nesterov=self.nesterov,
        )

    def _apply_slices(
        self, step: OptimizerStep, variable: Variable, slices: IndexedSlicesValue
    ) -> None:
        if self.momentum:
            super()._apply_slices(step, variable, slices)
        else:
            raw_ops.ResourceScatterSub(
                resource=variable.handle,
                indices=slices.indices,
                updates=slices.values * step.rate(variable.dtype),
            )


@entrances
class Adam(Optimizer):
    """Adam: steps scaled by running means of the gradient and of its square.

    At step `t`: `m += (1 - beta_1) * (g - m); v += (1 - beta_2) * (g * g - v);
    w -= learning_rate * sqrt(1 - beta_2**t) / (1 - beta_1**t) * m / (sqrt(v) + epsilon)`.

    Args:
        learning_rate: How far a step goes: a number, or a function of the number of steps taken.
        beta_1: How much of the mean of the gradients stays.
        beta_2: How much of the mean of their squares stays.
        epsilon: Added to the root of the latter.
        amsgrad: Take the largest `v` so far, element by element, in the place of `v`.

    Slots: `momentum`, `velocity`, and `velocity_hat` for amsgrad. Source: Kingma and Ba,
    https://arxiv.org/abs/1412.6980; `ResourceApplyAdam`, `ResourceApplyAdamWithAmsgrad`.
    """

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
    ) -> None:
        super().__init__(learning_rate)
        self.beta_1 = checked_number("beta_1", beta_1, 0, 1)
        self.beta_2 = checked_number("beta_2", beta_2, 0, 1)
        self.epsilon, self.amsgrad = checked_number("epsilon", epsilon, 0), amsgrad

    def slot_values(self, variable: Variable) -> dict[str, Any]:
        """All zeros.

        Raises:
            InvalidArgumentError: a beta is 1 in the type of the variable, which would never change.
        """
        for name, beta in (("beta_1", self.beta_1), ("beta_2", self.beta_2)):
            if scalar(variable.dtype, beta) == 1:
                raise InvalidArgumentError(
                    f"Variable {variable.name!r} would never change: {name}={beta} is 1 as {variable.dtype.tf_name}. "
                    f"Take a smaller {name}, or a float32 variable"
                )
        return super().slot_values(variable)

    def saved_slots(self) -> Sequence[Mapping[str, str]]:
        """The names of the slots, with those of Keras's lists."""
        slots = [{"momentum": "_momentums", "velocity": "_velocities"}]
        return [*slots, {"velocity_hat": "_velocity_hats"}] if self.amsgrad else slots

    def earlier_slots(self) -> EarlierSlots:
        """What TF1 and Keras 2 call the optimiser and its slots."""
        hat = {"velocity_hat": "vhat"} if self.amsgrad else {}
        slots = {"momentum": "m", "velocity": "v", **hat}
        return EarlierSlots("Adam", slots, betas=[self.beta_1, self.beta_2])

    def _apply(self, step: OptimizerStep, variable: Variable, grad: Any) -> None:
        op = raw_ops.ResourceApplyAdamWithAmsgrad if self.amsgrad else raw_ops.ResourceApplyAdam
        largest = {"vhat": self.slot(variable, "velocity_hat").handle} if self.amsgrad else {}
        op(
            var=variable.handle,
            m=self.slot(variable, "momentum").handle,
            v=self.slot(variable, "velocity").handle,
            **largest,
            beta1_power=step.power(variable.dtype, self.beta_1),
            beta2_power=step.power(variable.dtype, self.beta_2),
            lr=step.rate(variable.dtype),
            beta1=scalar(variable.dtype, self.beta_1),
            beta2=scalar(variable.dtype, self.beta_2),
            epsilon=scalar(variable.dtype, self.epsilon),
            grad=grad,
        )


@entrances
class AdamW(Adam):
    """Adam after a decay of the weights: `w -= learning_rate * weight_decay * w`.

    Args:
        learning_rate: How far a step goes: a number, or a function of the number of steps taken.
        weight_decay: The part of the weights that goes, times the learning rate.
        beta_1: As for Adam.
        beta_2: As for Adam.
        epsilon: As for Adam.
        amsgrad: As for Adam.

    Source: Loshchilov and Hutter, https://arxiv.org/abs/1711.05101.
    """

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        weight_decay: float = 0.004,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
    ) -> None:
        super().__init__(learning_rate, beta_1, beta_2, epsilon, amsgrad)
        self.weight_decay = checked_number("weight_decay", weight_decay)

    def _apply(self, step: OptimizerStep, variable: Variable, grad: Any) -> None:
        decay = step.rate(variable.dtype) * scalar(variable.dtype, self.weight_decay)
        variable.assign_sub(variable.value * decay)
        super()._apply(step, variable, grad)


@entrances
class RMSprop(Optimizer):
    """RMSprop: steps divided by the root of a running mean of the squared gradient.

    `ms = rho * ms + (1 - rho) * g * g; step = momentum * step + learning_rate * g / sqrt(ms + epsilon); w -= step`.
    Centered: `mg = rho * mg + (1 - rho) * g`, and `ms - mg * mg` in the place of `ms` below the root.

    Args:
        learning_rate: How far a step goes: a number, or a function of the number of steps taken.
        rho: How much of the mean stays.
        momentum: The part of the last step that is taken again.
        epsilon: Added below the root.
        centered: Subtract the square of the mean of the gradient from the mean of its square.

    Slots: `velocity` (`ms`), `momentum` (`step`), and `average_gradient` (`mg`) where centered. Source:
    `ResourceApplyRMSProp`, `ResourceApplyCenteredRMSProp`.
    """

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        rho: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-7,
        centered: bool = False,
    ) -> None:
        super().__init__(learning_rate)
        self.rho = checked_number("rho", rho, 0, 1)
        self.momentum = checked_number("momentum", momentum, 0, 1)
        self.epsilon, self.centered = checked_number("epsilon", epsilon, 0), centered

    def slot_values(self, variable: Variable) -> dict[str, Any]:
        """All zeros."""
        names = ("velocity", "momentum", "average_gradient")
        return {name: filled(variable) for name in (names if self.centered else names[:2])}

    def saved_slots(self) -> Sequence[Mapping[str, str]]:
        """The names of the slots, with those of Keras's lists; a step that is not taken again is not saved."""
        momentum = [{"momentum": "_momentums"}] if self.momentum else []
        centered = [{"average_gradient": "_average_gradients"}] if self.centered else []
        return [{"velocity": "_velocities"}, *momentum, *centered]

    def earlier_slots(self) -> EarlierSlots:
        """What TF1 and Keras 2 call the optimiser and its slots."""
        mean = {"average_gradient": "mg"} if self.centered else {}
        slots = {"velocity": "rms", **mean, "momentum": "momentum"}
        return EarlierSlots("RMSProp", slots, optional=[] if self.momentum else ["momentum"])

    def _apply(self, step: OptimizerStep, variable: Variable, grad: Any) -> None:
        op = raw_ops.ResourceApplyCenteredRMSProp if self.centered else raw_ops.ResourceApplyRMSProp
        mean = {"mg": self.slot(variable, "average_gradient").handle} if self.centered else {}
        op(
            var=variable.handle,
            **mean,
            ms=self.slot(variable, "velocity").handle,
            mom=self.slot(variable, "momentum").handle,
            lr=step.rate(variable.dtype),
            rho=scalar(variable.dtype, self.rho),
            momentum=scalar(variable.dtype, self.momentum),
            epsilon=scalar(variable.dtype, self.epsilon),
            grad=grad,
        )


class _Accumulating(Optimizer):
    """An optimiser that sums squared gradients.

    An op applies it with all rows of a gradient, and another with some of them, to these alone.
    """

    _op: ClassVar[str]
    initial_accumulator_value: float

    def slot_values(self, variable: Variable) -> dict[str, Any]:
        """`accumulator`: its initial value; zeros for others."""
        accumulator = filled(variable, self.initial_accumulator_value)
        return {**super().slot_values(variable), "accumulator": accumulator}

    @abc.abstractmethod
    def _arguments(self, step: OptimizerStep, variable: Variable) -> dict[str, Any]:
        """The inputs of both ops but the gradient."""

    def _apply(self, step: OptimizerStep, variable: Variable, grad: Any) -> None:
        apply = getattr(raw_ops, f"ResourceApply{self._op}")
        apply(**self._arguments(step, variable), grad=grad)

    def _apply_slices(
        self, step: OptimizerStep, variable: Variable, slices: IndexedSlicesValue
    ) -> None:
        apply = getattr(raw_ops, f"ResourceSparseApply{self._op}")
        apply(**self._arguments(step, variable), grad=slices.values, indices=slices.indices)


@entrances
class Adagrad(_Accumulating):
    """Adagrad: steps divided by the root of the sum of all squared gradients.

    `accumulator += g * g; w -= learning_rate * g / (sqrt(accumulator) + epsilon)`. Keras 3 has epsilon below the root.

    Args:
        learning_rate: How far a step goes: a number, or a function of the number of steps taken.
        initial_accumulator_value: What the sum begins with.
        epsilon: Added to the root.

    Slots: `accumulator`. Source: Duchi et al., JMLR 2011; `ResourceApplyAdagradV2`.
    """

    _op = "AdagradV2"

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        initial_accumulator_value: float = 0.1,
        epsilon: float = 1e-7,
    ) -> None:
        super().__init__(learning_rate)
        self.initial_accumulator_value = checked_number(
            "initial_accumulator_value", initial_accumulator_value, 0
        )
        self.epsilon = checked_number("epsilon", epsilon, 0)

    def saved_slots(self) -> Sequence[Mapping[str, str]]:
        """The names of the slots, with those of Keras's lists."""
        return [{"accumulator": "_accumulators"}]

    def earlier_slots(self) -> EarlierSlots:
        """What TF1 and Keras 2 call the optimiser and its slots."""
        return EarlierSlots("Adagrad", {"accumulator": "accumulator"})

    def _arguments(self, step: OptimizerStep, variable: Variable) -> dict[str, Any]:
        return {
            "var": variable.handle,
            "accum": self.slot(variable, "accumulator").handle,
            "lr": step.rate(variable.dtype),
            "epsilon": scalar(variable.dtype, self.epsilon),
        }


@entrances
class Ftrl(_Accumulating):
    """Follow the regularised leader: sparse weights for sparse data.

    Args:
        learning_rate: How far a step goes: a number, or a function of the number of steps taken.
        learning_rate_power: The power of the sum of squares by which steps shrink; at most 0.
        initial_accumulator_value: What the sum begins with.
        l1_regularization_strength: The weight of the sum of absolute values.
        l2_regularization_strength: The weight of the sum of squares.
        l2_shrinkage_regularization_strength: The weight of the sum of squares in the loss.
        beta: As in the paper.

    Slots: `accumulator`, `linear`. Source: McMahan et al., KDD 2013; `ResourceApplyFtrlV2`.
    """

    _op = "FtrlV2"

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        l2_shrinkage_regularization_strength: float = 0.0,
        beta: float = 0.0,
    ) -> None:
        super().__init__(learning_rate)
        self.learning_rate_power = checked_number(
            "learning_rate_power", learning_rate_power, most=0
        )
        for name, value in (
            ("initial_accumulator_value", initial_accumulator_value),
            ("l1_regularization_strength", l1_regularization_strength),
            ("l2_regularization_strength", l2_regularization_strength),
            ("l2_shrinkage_regularization_strength", l2_shrinkage_regularization_strength),
            ("beta", beta),
        ):
            checked_number(name, value, 0)
        self.initial_accumulator_value = initial_accumulator_value
        self.l1_regularization_strength = l1_regularization_strength
        self.l2_regularization_strength = l2_regularization_strength
        self.l2_shrinkage_regularization_strength = l2_shrinkage_regularization_strength
        self.beta = beta

    def saved_slots(self) -> Sequence[Mapping[str, str]]:
        """The names of the slots, with those of Keras's lists."""
        return [{"accumulator": "_accumulators", "linear": "_linears"}]

    def earlier_slots(self) -> EarlierSlots:
        """What TF1 and Keras 2 call the optimiser and its slots."""
        return EarlierSlots("Ftrl", {"accumulator": "accumulator", "linear": "linear"})

    def _arguments(self, step: OptimizerStep, variable: Variable) -> dict[str, Any]:
        rate = step.rate(variable.dtype)
        # As in Keras: beta counts as a part of the regularisation.
        l2 = (
            scalar(variable.dtype, self.l2_regularization_strength)
            + scalar(variable.dtype, self.beta / 2) / rate
        )
        return {
            "var": variable.handle,
            "accum": self.slot(variable, "accumulator").handle,
            "linear": self.slot(variable, "linear").handle,
            "lr": rate,
            "l1": scalar(variable.dtype, self.l1_regularization_strength),
            "l2": l2,
            "l2_shrinkage": scalar(variable.dtype, self.l2_shrinkage_regularization_strength),
            "lr_power": scalar(variable.dtype, self.learning_rate_power),
        }
