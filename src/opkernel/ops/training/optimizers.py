"""Optimisers: their steps, and the inputs and types of the ops of each.

Source: TensorFlow core/ops/training_ops.cc.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

from opkernel.ops.kernel_types import COMPLEX, FLOATS, WIDE_FLOATS
from opkernel.ops.training.step_rules import (
    ada_max,
    adadelta,
    adagrad,
    adagrad_da,
    adagrad_v2,
    adam,
    adam_with_amsgrad,
    add_sign,
    centered_rms_prop,
    ftrl,
    ftrl_v2,
    gradient_descent,
    keras_momentum,
    momentum_descent,
    power_sign,
    proximal_adagrad,
    proximal_gradient_descent,
    rms_prop,
)
from opkernel.types import DataType

_HALF_TO_DOUBLE = (DataType.DT_HALF, *WIDE_FLOATS)


class Optimizer(NamedTuple):
    """The ops of an optimiser.

    Attributes:
        step: Changes arrays of the variables in place; takes the inputs and attrs of the op.
        variables: The inputs that are variables: the first one, and its slots.
        values: The other inputs.
        attrs: The attrs that the step takes.
        types: Those of the dense kernels.
        sparse_types: Those of the kernels for some rows alone; empty where there are no such ops.
        references: Whether there are ops for the variables of TensorFlow 1, too.
        bounded: Which ops take no rates or strengths below zero.
        empty_rows: Whether the sparse ops take rows without elements.
    """

    step: Callable[..., None]
    variables: str
    values: str
    attrs: tuple[str, ...] = ()
    types: tuple[DataType, ...] = (*FLOATS, *COMPLEX)
    sparse_types: tuple[DataType, ...] = ()
    references: bool = True
    bounded: Literal["none", "sparse", "all"] = "none"
    empty_rows: bool = True

    def inputs(self, *, sparse: bool) -> list[str]:
        """The names of the inputs in order."""
        names = f"{self.variables} {self.values}".split()
        if not sparse:
            return names
        names = ["grad" if name == "delta" else name for name in names]
        at = names.index("grad") + 1
        return [*names[:at], "indices", *names[at:]]


_NESTEROV = ("use_nesterov: bool = false",)
_SLOTS = ("update_slots: bool = true",)
_LINEAR = ("multiply_linear_by_lr: bool = false",)
_ALL = (*FLOATS, *COMPLEX)
_HALF_TO_COMPLEX = (*_HALF_TO_DOUBLE, *COMPLEX)

OPTIMIZERS = {
    "AdaMax": Optimizer(
        ada_max, "var m v", "beta1_power lr beta1 beta2 epsilon grad", types=_HALF_TO_DOUBLE
    ),
    "Adadelta": Optimizer(
        adadelta, "var accum accum_update", "lr rho epsilon grad", sparse_types=_ALL
    ),
    "Adagrad": Optimizer(
        adagrad, "var accum", "lr grad", _SLOTS, sparse_types=_ALL, empty_rows=False
    ),
    "AdagradDA": Optimizer(
        adagrad_da,
        "var gradient_accumulator gradient_squared_accumulator",
        "grad lr l1 l2 global_step",
        types=WIDE_FLOATS,
        sparse_types=WIDE_FLOATS,
        empty_rows=False,
    ),
    "AdagradV2": Optimizer(
        adagrad_v2, "var accum", "lr epsilon grad", _SLOTS, sparse_types=_ALL, empty_rows=False
    ),
    "Adam": Optimizer(
        adam, "var m v", "beta1_power beta2_power lr beta1 beta2 epsilon grad", _NESTEROV
    ),
    "AdamWithAmsgrad": Optimizer(
        adam_with_amsgrad,
        "var m v vhat",
        "beta1_power beta2_power lr beta1 beta2 epsilon grad",
        types=FLOATS,
        references=False,
    ),
    "AddSign": Optimizer(add_sign, "var m", "lr alpha sign_decay beta grad", types=FLOATS),
    "CenteredRMSProp": Optimizer(
        centered_rms_prop,
        "var mg ms mom",
        "lr rho momentum epsilon grad",
        sparse_types=_HALF_TO_COMPLEX,
    ),
    "Ftrl": Optimizer(
        ftrl,
        "var accum linear",
        "grad lr l1 l2 lr_power",
        _LINEAR,
        FLOATS,
        FLOATS,
        bounded="sparse",
        empty_rows=False,
    ),
    "FtrlV2": Optimizer(
        ftrl_v2,
        "var accum linear",
        "grad lr l1 l2 l2_shrinkage lr_power",
        _LINEAR,
        FLOATS,
        FLOATS,
        bounded="sparse",
        empty_rows=False,
    ),
    "GradientDescent": Optimizer(gradient_descent, "var", "alpha delta"),
    "KerasMomentum": Optimizer(
        keras_momentum,
        "var accum",
        "lr grad momentum",
        _NESTEROV,
        sparse_types=_ALL,
        references=False,
    ),
    "Momentum": Optimizer(
        momentum_descent, "var accum", "lr grad momentum", _NESTEROV, sparse_types=_ALL
    ),
    "PowerSign": Optimizer(power_sign, "var m", "lr logbase sign_decay beta grad", types=FLOATS),
    "ProximalAdagrad": Optimizer(
        proximal_adagrad,
        "var accum",
        "lr l1 l2 grad",
        types=WIDE_FLOATS,
        sparse_types=WIDE_FLOATS,
        bounded="all",
        empty_rows=False,
    ),
    "ProximalGradientDescent": Optimizer(
        proximal_gradient_descent,
        "var",
        "alpha l1 l2 delta",
        types=WIDE_FLOATS,
        sparse_types=WIDE_FLOATS,
        empty_rows=False,
    ),
    "RMSProp": Optimizer(
        rms_prop,
        "var ms mom",
        "lr rho momentum epsilon grad",
        sparse_types=_HALF_TO_COMPLEX,
    ),
}
"""By the end of the names of their ops."""
