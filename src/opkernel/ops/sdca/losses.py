"""The losses of SDCA: what the dual variable of an example becomes, and the losses of both problems.

Numbers are NumPy's of double, so that nothing overflows with an error. A label is -1 or 1 where it was 0 or 1.

Source: TensorFlow core/kernels/loss.h, logistic-loss.h, hinge-loss.h, smooth-hinge-loss.h, squared-loss.h,
poisson-loss.h; Ma et al., Adding vs. averaging in distributed primal-dual optimization (2015).
"""

from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError

_NEWTON_STEPS = 10
_MOST = np.finfo(np.float64).max
"""Stands for infinity, as in TensorFlow."""


class Loss:
    """A loss of one example.

    Attributes:
        smoothness: One over the Lipschitz constant of the derivative; 0 where there is none.
    """

    smoothness: float

    def converted(self, label: Any) -> Any:
        """The label as the other methods take it.

        Raises:
            InvalidArgumentError: the loss is not defined for it.
        """
        if label == 0 or label == 1:
            return label or -label - 1
        raise InvalidArgumentError(
            "Only labels of 0.0 or 1.0 are supported right now. Found example with label: "
            f"{label:g}"
        )

    def dual(self, label: Any, dual: Any, wx: Any, scale: Any) -> Any:
        """The dual variable that is best while the others stay.

        Args:
            label: The label.
            dual: The dual variable so far.
            wx: What the model predicts.
            scale: The squared norm of the example over l2, times its weight and the number of partitions.
        """
        raise NotImplementedError(f"{type(self).__name__} does not override dual")

    def dual_loss(self, dual: Any, label: Any) -> Any:
        """The loss of the dual problem, for an example of weight 1."""
        raise NotImplementedError(f"{type(self).__name__} does not override dual_loss")

    def primal_loss(self, wx: Any, label: Any) -> Any:
        """The loss of a prediction, for an example of weight 1."""
        raise NotImplementedError(f"{type(self).__name__} does not override primal_loss")

    def slope(self, wx: Any, label: Any) -> Any:
        """The derivative of the primal loss by the prediction."""
        raise NotImplementedError(f"{type(self).__name__} does not override slope")


class LogisticLoss(Loss):
    """`log(1 + exp(-label * wx))`."""

    smoothness = 4

    def dual(self, label: Any, dual: Any, wx: Any, scale: Any) -> Any:
        x = np.float64(0)
        for _ in range(_NEWTON_STEPS):
            tanh = np.tanh(x)
            numerator = -2 * label * x - wx - scale * (0.5 * (1 + tanh) / label - dual)
            x = x - numerator / (-2 * label - scale * (1 - tanh * tanh) * 0.5 / label)
        return 0.5 * (1 + np.tanh(x)) / label

    def dual_loss(self, dual: Any, label: Any) -> Any:
        part = dual * label
        rest = 1 - part
        log, log_rest = (np.log(one) if one > 0 else 0 for one in (part, rest))
        return part * log + rest * log_rest

    def primal_loss(self, wx: Any, label: Any) -> Any:
        margin = label * wx
        return np.log1p(np.exp(-margin)) if margin > 0 else np.log1p(np.exp(margin)) - margin

    def slope(self, wx: Any, label: Any) -> Any:
        margin = label * wx
        small = np.exp(-np.abs(margin))
        return -label * (small if margin > 0 else 1) / (1 + small)


class _Hinge(Loss):
    """Losses whose dual variables times the label are from 0 to 1."""

    def dual(self, label: Any, dual: Any, wx: Any, scale: Any) -> Any:
        best = dual + (label - wx - self.smoothness * dual) / (scale + self.smoothness)
        if label * best < 0:
            return np.float64(0)
        return label if label * best > 1 else best

    def dual_loss(self, dual: Any, label: Any) -> Any:
        part = dual * label
        if part < 0 or part > 1:
            return _MOST
        return -part + 0.5 * self.smoothness * dual * dual


class HingeLoss(_Hinge):
    """`max(0, 1 - label * wx)`."""

    smoothness = 0

    def primal_loss(self, wx: Any, label: Any) -> Any:
        return max(0.0, 1 - label * wx)

    def slope(self, wx: Any, label: Any) -> Any:
        return -label if label * wx < 1 else 0.0


class SmoothHingeLoss(_Hinge):
    """The hinge loss, with a parabola where it bends."""

    smoothness = 1

    def primal_loss(self, wx: Any, label: Any) -> Any:
        margin = label * wx
        if margin >= 1:
            return 0.0
        return 0.5 - margin if margin <= 0 else 0.5 * (1 - margin) ** 2

    def slope(self, wx: Any, label: Any) -> Any:
        margin = label * wx
        if margin >= 1:
            return 0.0
        return -label if margin <= 0 else wx - label


class SquaredLoss(Loss):
    """Half the square of the error."""

    smoothness = 1

    def converted(self, label: Any) -> Any:
        return label

    def dual(self, label: Any, dual: Any, wx: Any, scale: Any) -> Any:
        return dual + (label - dual - wx) / (1 + scale)

    def dual_loss(self, dual: Any, label: Any) -> Any:
        return dual * (0.5 * dual - label)

    def primal_loss(self, wx: Any, label: Any) -> Any:
        return 0.5 * (wx - label) ** 2

    def slope(self, wx: Any, label: Any) -> Any:
        return wx - label


class PoissonLoss(Loss):
    """`exp(wx) - wx * label`."""

    smoothness = 1

    def converted(self, label: Any) -> Any:
        if label < 0:
            raise InvalidArgumentError(
                "Only non-negative labels can be used with the Poisson log loss. Found example with "
                f"label: {label:g}"
            )
        return label

    def dual(self, label: Any, dual: Any, wx: Any, scale: Any) -> Any:
        rest = label - dual
        x = np.log(rest) if rest > 0 else np.float64(0)
        for _ in range(_NEWTON_STEPS):
            power = np.exp(x)
            x = x - (x - wx - scale * (rest - power)) / (1 + scale * power)
        return label - np.exp(x)

    def dual_loss(self, dual: Any, label: Any) -> Any:
        rest = label - dual
        if rest == 0:
            return 0.0
        return _MOST if rest < 0 else rest * (np.log(rest) - 1)

    def primal_loss(self, wx: Any, label: Any) -> Any:
        return np.exp(wx) - wx * label

    def slope(self, wx: Any, label: Any) -> Any:
        return np.exp(wx) - label


LOSSES: dict[str, Loss] = {
    "logistic_loss": LogisticLoss(),
    "squared_loss": SquaredLoss(),
    "hinge_loss": HingeLoss(),
    "smooth_hinge_loss": SmoothHingeLoss(),
    "poisson_loss": PoissonLoss(),
}
