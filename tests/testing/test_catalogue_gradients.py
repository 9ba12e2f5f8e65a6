"""The gradients of the catalogue agree with finite differences: at recorded calls, and some drawn ones."""

import pytest
from tests.testing.test_catalogue import as_kernels_take, recorded, session

from opkernel.kernel import global_kernel_registry
from opkernel.opdef import global_op_registry
from opkernel.testing import OpCall, examine_op
from opkernel.testing.draw_calls import CallSource
from opkernel.testing.draw_gradient_calls import away_from_kinks
from opkernel.testing.gradient_check import check_call_gradient, why_no_gradient

# One of each kind: element-wise, with kinks, with a domain, broadcast, reduced, windows, lists.
DRAWN = [
    "Abs",
    "AddN",
    "Atan2",
    "BiasAdd",
    "ConcatV2",
    "DepthwiseConv2dNative",
    "FloorMod",
    "Log",
]
DRAWN += ["MatMul", "Maximum", "Mean", "Mul", "Pow", "Relu", "SelectV2", "Sqrt"]
NO_DIFFERENCES = {
    "CTCLoss": "TensorFlow computes doubles in float, which is too coarse",
    "Eig": "the phase of a vector may change with its matrix",
    "MatrixDeterminant": "TensorFlow's gradient of complex matrices lacks a conjugate",
    "Svd": "the phase of a vector may change with its matrix",
}


def compared_elements(name: str) -> int:
    """At how many elements of recorded calls of an op its gradient was compared."""
    registration = global_op_registry().look_up(name)
    if why_no_gradient(registration):
        return 0
    kernels = global_kernel_registry().registrations_for(name)
    source = CallSource(registration, [kernel.kernel_def for kernel in kernels])
    compared = 0
    for op in recorded()[name][:1]:
        inputs = tuple(map(as_kernels_take, session().run(list(op.inputs))))
        call = away_from_kinks(OpCall(registration, op.node_def, inputs), source, "near")
        compared += 0 if call is None else check_call_gradient(call)
    return compared


def test_on_recorded_calls() -> None:
    compared = {name: compared_elements(name) for name in recorded() if name not in NO_DIFFERENCES}
    assert sum(number > 0 for number in compared.values()) > 170
    assert sum(compared.values()) > 2500


@pytest.mark.parametrize("name", DRAWN)
def test_on_drawn_calls(name: str) -> None:
    report = examine_op(name, max_examples=20)
    assert report.failure is None, str(report.failure)
    assert report.gradients >= 3


def test_ops_whose_gradient_is_not_the_derivative_say_why() -> None:
    """Each as TensorFlow's gradient of the op, which was asked."""
    skipped = {op: examine_op(op, max_examples=5).gradient_skipped for op in ("PadV2", "RGBToHSV")}
    assert skipped == {
        "PadV2": "constant_values count as constant",
        "RGBToHSV": "it holds for values between 0 and 1",
    }
    assert "no_gradient" in examine_op("ZerosLike", max_examples=5).gradient_skipped
