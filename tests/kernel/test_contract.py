"""The commonest claims in one word."""

import numpy as np
import pytest
from tests.kernel.kernels import make_kernel

from opkernel.device.local_device import LocalDevice
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import KernelContract, OpKernel


@pytest.mark.parametrize(
    ("kind", "contract"),
    [
        ("elementwise", KernelContract(elementwise=True, prepares=("x",))),
        ("same_shapes", KernelContract(elementwise=True, same_shapes=True, prepares=("x",))),
        ("view", KernelContract(may_alias=True, prepares=("x",))),
        ("opaque", KernelContract(prepares=("x",))),
    ],
)
def test_a_kind_adds_its_claim(kind, contract):
    assert KernelContract(prepares=("x",)).of_kind(kind) == contract


@pytest.mark.parametrize("word", ["", "views", "Elementwise", None])
def test_another_word_is_refused(word):
    with pytest.raises(InvalidArgumentError) as raised:
        KernelContract().of_kind(word)
    assert raised.value.message == (
        f"{word!r} is no kind of kernel; there are elementwise, same_shapes, view, opaque"
    )


@pytest.mark.parametrize(
    ("contract", "device_type", "is_expensive"),
    [
        (KernelContract(), "CPU", True),
        (KernelContract(may_alias=True), "CPU", False),
        (KernelContract(may_alias=frozenset({("y", "x")})), "CPU", True),
        (KernelContract(), "GPU", False),
        (KernelContract(), "DEFAULT", False),
        (KernelContract(may_alias=True), "GPU", False),
        (KernelContract(expensive=True, may_alias=True), "GPU", True),
        (KernelContract(expensive=False), "CPU", False),
    ],
)
def test_which_kernels_are_worth_a_thread(contract, device_type, is_expensive):
    kernel = make_kernel(OpKernel, contract=contract, inputs=["x: float"], outputs=["y: float"])
    kernel.device = LocalDevice(device_type, np)
    assert kernel.is_expensive is is_expensive


def test_a_class_claims_for_all_its_kernels_that_it_forwards():
    class Forwards(OpKernel):
        forwards_inputs = True

    claims = KernelContract(releases_gil=True)
    for kernel, forwards in ((Forwards, True), (OpKernel, False)):
        found = make_kernel(kernel, contract=claims, outputs=["y: float"]).contract
        assert found == KernelContract(releases_gil=True, forwards_inputs=forwards)
    claimed = KernelContract(forwards_inputs=True)
    assert make_kernel(OpKernel, contract=claimed, outputs=["y: float"]).contract == claimed


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        (np.array([2, 3], np.int32), [2, 3]),
        (np.array([], np.int64), []),
        (np.array([1.0, 2.0], np.float32), None),
        (np.array([1], np.int16), None),
        (np.int32(3), None),
        (np.array([[1, 2]], np.int32), None),
        (np.array([2, -3], np.int32), None),
    ],
)
def test_a_shape_is_a_vector_of_sizes(value, shape):
    kernel = make_kernel(OpKernel, outputs=["y: float"])
    if shape is not None:
        assert list(kernel.make_shape(value)) == shape
    else:
        with pytest.raises(InvalidArgumentError):
            kernel.make_shape(value)
