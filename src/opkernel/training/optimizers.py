"""The optimisers: SGD, Adam, AdamW, RMSprop, Adagrad, Ftrl, with the defaults of Keras 3.

Source: TensorFlow core/kernels/training_ops.cc for the steps; Keras 3 keras/src/optimizers for arguments and defaults.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.training.optimizer import Optimizer
from opkernel.training.variable import Variable
from opkernel.training.variable_gradients import Slices

__all__ = ["SGD", "Adagrad", "Adam", "AdamW", "Ftrl", "Optimizer", "RMSprop"]


def _filled(variable: Variable, value: float = 0.0) -> Any:
    current = variable.numpy()
    return np.full(current.shape, value, current.dtype)


class SGD(Optimizer):
    """Gradient descent: `w -= learning_rate * g`; with momentum `v = momentum * v - learning_rate * g; w += v`.

    Args:
        learning_rate: How far a step goes.
        momentum: The part of the last step that is taken again.
        nesterov: Look ahead by the momentum: `w += momentum * v - learning_rate * g`.

    Slots: `momentum`, where there is momentum.
    """

    def __init__(
        self, learning_rate: float = 0.01, momentum: float = 0.0, nesterov: bool = False
    ) -> None:
        if not 0 <= momentum <= 1:
            raise InvalidArgumentError(f"momentum must be between 0 and 1, not {momentum}")
        super().__init__(learning_rate)
        self.momentum, self.nesterov = momentum, nesterov

    def slot_values(self, variable: Variable) -> dict[str, Any]:
        """`momentum`: zeros."""
        return {"momentum": _filled(variable)} if self.momentum else {}

    def _apply(self, variable: Variable, grad: Any) -> None:
        rate = self._rate(variable)
        if not self.momentum:
            raw_ops.ResourceApplyGradientDescent(var=variable.handle, alpha=rate, delta=grad)
            return
        raw_ops.ResourceApplyKerasMomentum(
            var=variable.handle,
            accum=self.slot(variable, "momentum").handle,
            lr=rate,
            grad=grad,
            momentum=self._number(variable, self.momentum),
            use_nesterov=self.nesterov,
        )

    def _apply_slices(self, variable: Variable, slices: Slices) -> None:
        if self.momentum:
            super()._apply_slices(variable, slices)
        else:
            raw_ops.ResourceScatterSub(
                resource=variable.handle,
                indices=slices.indices,
                updates=slices.values * self._rate(variable),
            )


class Adam(Optimizer):
    """Adam: steps scaled by running means of the gradient and of its square.

    Args:
        learning_rate: How far a step goes.
        beta_1: How much of the mean of the gradients stays.
        beta_2: How much of the mean of their squares stays.
        epsilon: Added to the root of the latter.

    Slots: `m`, `v`. Source: Kingma and Ba, https://arxiv.org/abs/1412.6980; `ResourceApplyAdam`.
    """

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
    ) -> None:
        super().__init__(learning_rate)
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon

    def slot_values(self, variable: Variable) -> dict[str, Any]:
        """`m` and `v`: zeros."""
        return {"m": _filled(variable), "v": _filled(variable)}

    def _apply(self, variable: Variable, grad: Any) -> None:
        raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self.slot(variable, "m").handle,
            v=self.slot(variable, "v").handle,
            beta1_power=self._power(variable, self.beta_1),
            beta2_power=self._power(variable, self.beta_2),
            lr=self._rate(variable),
            beta1=self._number(variable, self.beta_1),
            beta2=self._number(variable, self.beta_2),
            epsilon=self._number(variable, self.epsilon),
            grad=grad,
        )


class AdamW(Adam):
    """Adam after a decay of the weights: `w -= learning_rate * weight_decay * w`.

    Args:
        learning_rate: How far a step goes.
        weight_decay: The part of the weights that goes, times the learning rate.
        beta_1: As for Adam.
        beta_2: As for Adam.
        epsilon: As for Adam.

    Source: Loshchilov and Hutter, https://arxiv.org/abs/1711.05101.
    """

    def __init__(
        self,
        learning_rate: float = 0.001,
        weight_decay: float = 0.004,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
    ) -> None:
        super().__init__(learning_rate, beta_1, beta_2, epsilon)
        self.weight_decay = weight_decay

    def _apply(self, variable: Variable, grad: Any) -> None:
        decay = self._rate(variable) * self._number(variable, self.weight_decay)
        variable.assign_sub(variable.value * decay)
        super()._apply(variable, grad)


class RMSprop(Optimizer):
    """RMSprop: steps divided by the root of a running mean of the squared gradient.

    Args:
        learning_rate: How far a step goes.
        rho: How much of the mean stays.
        momentum: The part of the last step that is taken again.
        epsilon: Added below the root.
        centered: Subtract the square of the mean of the gradient from the mean of its square.

    Slots: `rms`, `momentum`, and `mg` where centered. Source: `ResourceApplyRMSProp`, `ResourceApplyCenteredRMSProp`.
    """

    def __init__(
        self,
        learning_rate: float = 0.001,
        rho: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-7,
        centered: bool = False,
    ) -> None:
        super().__init__(learning_rate)
        self.rho, self.momentum, self.epsilon, self.centered = rho, momentum, epsilon, centered

    def slot_values(self, variable: Variable) -> dict[str, Any]:
        """All zeros."""
        names = ("rms", "momentum", "mg") if self.centered else ("rms", "momentum")
        return {name: _filled(variable) for name in names}

    def _arguments(self, variable: Variable) -> dict[str, Any]:
        handles = {"ms": "rms", "mom": "momentum"} | ({"mg": "mg"} if self.centered else {})
        return {
            "var": variable.handle,
            **{argument: self.slot(variable, name).handle for argument, name in handles.items()},
            "lr": self._rate(variable),
            "rho": self._number(variable, self.rho),
            "momentum": self._number(variable, self.momentum),
            "epsilon": self._number(variable, self.epsilon),
        }

    def _apply(self, variable: Variable, grad: Any) -> None:
        op = raw_ops.ResourceApplyCenteredRMSProp if self.centered else raw_ops.ResourceApplyRMSProp
        op(**self._arguments(variable), grad=grad)


class Adagrad(Optimizer):
    """Adagrad: steps divided by the root of the sum of all squared gradients.

    Args:
        learning_rate: How far a step goes.
        initial_accumulator_value: What the sum begins with.
        epsilon: Added to the root.

    Slots: `accumulator`. Source: Duchi et al., JMLR 2011; `ResourceApplyAdagradV2`.
    """

    def __init__(
        self,
        learning_rate: float = 0.001,
        initial_accumulator_value: float = 0.1,
        epsilon: float = 1e-7,
    ) -> None:
        super().__init__(learning_rate)
        self.initial_accumulator_value, self.epsilon = initial_accumulator_value, epsilon

    def slot_values(self, variable: Variable) -> dict[str, Any]:
        """`accumulator`: its initial value."""
        return {"accumulator": _filled(variable, self.initial_accumulator_value)}

    def _arguments(self, variable: Variable) -> dict[str, Any]:
        return {
            "var": variable.handle,
            "accum": self.slot(variable, "accumulator").handle,
            "lr": self._rate(variable),
            "epsilon": self._number(variable, self.epsilon),
        }

    def _apply(self, variable: Variable, grad: Any) -> None:
        raw_ops.ResourceApplyAdagradV2(**self._arguments(variable), grad=grad)


class Ftrl(Optimizer):
    """Follow the regularised leader: sparse weights for sparse data.

    Args:
        learning_rate: How far a step goes.
        learning_rate_power: The power of the sum of squares by which steps shrink; at most 0.
        initial_accumulator_value: What the sum begins with.
        l1_regularization_strength: The weight of the sum of absolute values.
        l2_regularization_strength: The weight of the sum of squares.
        l2_shrinkage_regularization_strength: The weight of the sum of squares in the loss.
        beta: As in the paper.

    Slots: `accumulator`, `linear`. Source: McMahan et al., KDD 2013; `ResourceApplyFtrlV2`.
    """

    def __init__(
        self,
        learning_rate: float = 0.001,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        l2_shrinkage_regularization_strength: float = 0.0,
        beta: float = 0.0,
    ) -> None:
        if learning_rate_power > 0:
            raise InvalidArgumentError(
                f"learning_rate_power must be at most 0, not {learning_rate_power}"
            )
        super().__init__(learning_rate)
        self.learning_rate_power = learning_rate_power
        self.initial_accumulator_value = initial_accumulator_value
        self.l1_regularization_strength = l1_regularization_strength
        self.l2_regularization_strength = l2_regularization_strength
        self.l2_shrinkage_regularization_strength = l2_shrinkage_regularization_strength
        self.beta = beta

    def slot_values(self, variable: Variable) -> dict[str, Any]:
        """`accumulator`: its initial value; `linear`: zeros."""
        return {
            "accumulator": _filled(variable, self.initial_accumulator_value),
            "linear": _filled(variable),
        }

    def _arguments(self, variable: Variable) -> dict[str, Any]:
        rate = self._rate(variable)
        # As in Keras: beta counts as a part of the regularisation.
        l2 = (
            self._number(variable, self.l2_regularization_strength)
            + self._number(variable, self.beta / 2) / rate
        )
        return {
            "var": variable.handle,
            "accum": self.slot(variable, "accumulator").handle,
            "linear": self.slot(variable, "linear").handle,
            "lr": rate,
            "l1": self._number(variable, self.l1_regularization_strength),
            "l2": l2,
            "l2_shrinkage": self._number(variable, self.l2_shrinkage_regularization_strength),
            "lr_power": self._number(variable, self.learning_rate_power),
        }

    def _apply(self, variable: Variable, grad: Any) -> None:
        raw_ops.ResourceApplyFtrlV2(**self._arguments(variable), grad=grad)


def _sparse(op: str) -> Any:
    """The method that applies the gradients of rows by an op, to these rows alone."""

    def apply(self: Any, variable: Variable, slices: Slices) -> None:
        getattr(raw_ops, op)(
            **self._arguments(variable), grad=slices.values, indices=slices.indices
        )

    return apply


Adagrad._apply_slices = _sparse("ResourceSparseApplyAdagradV2")  # type: ignore[method-assign]
Ftrl._apply_slices = _sparse("ResourceSparseApplyFtrlV2")  # type: ignore[method-assign]
