"""Schedules of the learning rate: functions of the number of steps taken, with the names and formulas of Keras.

Source: Keras 3 keras/src/optimizers/schedules/learning_rate_schedule.py.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError


class LearningRateSchedule(abc.ABC):
    """A learning rate that depends on the number of steps taken: 0 at the first step."""

    @abc.abstractmethod
    def __call__(self, step: Any) -> Any:
        """The learning rate of a step; `step` and the rate are float32, an array or a tensor."""


class _Decay(LearningRateSchedule):
    """Schedules of a rate that falls by steps of a length.

    Args:
        initial_learning_rate: The rate of the first step.
        decay_steps: The number of steps in which it falls by the decay rate.
        decay_rate: How much it falls.
        staircase: Whether it falls only at the end of these steps.

    Raises:
        InvalidArgumentError: `decay_steps` is not positive.
    """

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: float,
        decay_rate: float,
        staircase: bool = False,
    ) -> None:
        self.initial_learning_rate = initial_learning_rate
        self.decay_steps = _positive("decay_steps", decay_steps)
        self.decay_rate, self.staircase = decay_rate, staircase

    def _periods(self, step: Any) -> Any:
        periods = step / np.float32(self.decay_steps)
        return raw_ops.Floor(x=periods) if self.staircase else periods


class ExponentialDecay(_Decay):
    """`initial_learning_rate * decay_rate ** (step / decay_steps)`."""

    def __call__(self, step: Any) -> Any:
        """The learning rate of a step."""
        power = raw_ops.Pow(x=np.float32(self.decay_rate), y=self._periods(step))
        return np.float32(self.initial_learning_rate) * power


class InverseTimeDecay(_Decay):
    """`initial_learning_rate / (1 + decay_rate * step / decay_steps)`."""

    def __call__(self, step: Any) -> Any:
        """The learning rate of a step."""
        growth = np.float32(self.decay_rate) * self._periods(step)
        return np.float32(self.initial_learning_rate) / (np.float32(1) + growth)


class CosineDecay(LearningRateSchedule):
    """From a rate to a part of it, along half a turn of the cosine; before that a linear rise, if asked for.

    Args:
        initial_learning_rate: The rate of the first step.
        decay_steps: The number of steps in which it falls.
        alpha: The part of the rate that is left then.
        warmup_target: The rate after the rise, from which it falls; None for no rise.
        warmup_steps: The number of steps of the rise.

    Raises:
        InvalidArgumentError: `decay_steps` is not positive.
    """

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: float,
        alpha: float = 0.0,
        *,
        warmup_target: float | None = None,
        warmup_steps: float = 0,
    ) -> None:
        self.initial_learning_rate = initial_learning_rate
        self.decay_steps = _positive("decay_steps", decay_steps)
        self.alpha, self.warmup_target = alpha, warmup_target
        self.warmup_steps = 0 if warmup_target is None else warmup_steps

    def __call__(self, step: Any) -> Any:
        """The learning rate of a step."""
        first, target = np.float32(self.initial_learning_rate), self.warmup_target
        after = step - np.float32(self.warmup_steps)
        highest = first if target is None else np.float32(target)
        done = raw_ops.Minimum(x=after / np.float32(self.decay_steps), y=np.float32(1))
        cosine = (raw_ops.Cos(x=done * np.float32(np.pi)) + np.float32(1)) * np.float32(0.5)
        decayed = highest * (np.float32(1 - self.alpha) * cosine + np.float32(self.alpha))
        if not self.warmup_steps:
            return decayed
        rising = first + (highest - first) * step / np.float32(self.warmup_steps)
        return raw_ops.SelectV2(condition=after < np.float32(0), t=rising, e=decayed)


class PiecewiseConstantDecay(LearningRateSchedule):
    """One rate up to and with each boundary, and another after it.

    Args:
        boundaries: Numbers of steps, rising.
        values: The rates: one more than boundaries.

    Raises:
        InvalidArgumentError: there are more or fewer.
    """

    def __init__(self, boundaries: Sequence[float], values: Sequence[float]) -> None:
        if len(values) != len(boundaries) + 1:
            raise InvalidArgumentError(
                f"{len(boundaries)} boundaries have {len(boundaries) + 1} values between them, not {len(values)}"
            )
        self.boundaries, self.values = [*boundaries], [*values]

    def __call__(self, step: Any) -> Any:
        """The learning rate of a step."""
        rate: Any = np.float32(self.values[0])
        for boundary, value in zip(self.boundaries, self.values[1:], strict=True):
            is_after = step > np.float32(boundary)
            rate = raw_ops.SelectV2(condition=is_after, t=np.float32(value), e=rate)
        return rate


def _positive(name: str, value: float) -> float:
    if not value > 0:
        raise InvalidArgumentError(f"{name} must be more than 0, not {value}")
    return value
