"""The gradient function of an op, checked on calls that are drawn.

`check_gradient` makes the same assertion at points that an author chooses. Elements at which the op has
no derivative, or is not defined, do not count: there finite differences to both sides, or of several
steps, contradict each other.
"""

from dataclasses import dataclass

import numpy as np

from opkernel.errors import OpError
from opkernel.gradients import look_up_gradient
from opkernel.gradients.registry import (
    has_gradient_entry,
    is_of_catalogue,
    misspelt,
    why_not_derivative,
)
from opkernel.opdef import OpRegistrationData
from opkernel.testing.gradient_check import compare_gradients
from opkernel.testing.op_call import CheckFailure, OpCall

_MAX_ELEMENTS = 24
"""By how many elements of an input to differentiate: each takes two computations of the op."""


@dataclass(frozen=True)
class GradientChecker:
    """Checks the gradient function of ops on calls, as `Checker` does their kernels."""

    def check(self, call: OpCall) -> int:
        """Check a call; the result is the number of elements at which gradients were compared.

        Raises:
            CheckFailure: the gradient is wrong.
        """
        try:
            return _compare(call)
        except OpError:
            return 0

    def refusal(self, call: OpCall) -> str:
        """The error with which the kernel or the gradient refuses a call; empty where neither does."""
        try:
            _compare(call)
        except OpError as error:
            return f"{error.code.name}: {error.message.splitlines()[0]}"
        return ""


def _compare(call: OpCall) -> int:
    """Compare gradients; OpError where the kernel refuses the call, or its gradient is not known."""
    call.infer_shapes()
    try:
        with np.errstate(all="ignore"):
            return compare_gradients(call, max_elements=_MAX_ELEMENTS, everywhere=False)
    except CheckFailure as failure:
        # Gradients of the catalogue refuse the same calls as TensorFlow's.
        if isinstance(failure.__cause__, OpError) and is_of_catalogue(call.node_def.op):
            raise failure.__cause__ from failure
        raise


def why_no_gradient(registration: OpRegistrationData) -> str:
    """Why the gradient of an op is not checked; empty where it is."""
    op_def = registration.op_def
    if not has_gradient_entry(op_def.name):
        return f"none is registered{misspelt(op_def.name)}"
    if look_up_gradient(op_def.name) is None:
        return "no_gradient says that there is none"
    if reason := why_not_derivative(op_def.name):
        return reason
    if op_def.is_stateful:
        return "the op is stateful"
    if any(arg.is_ref for arg in op_def.input_arg):
        return "the op takes references"
    return ""
