"""Tensors that sessions keep; errors are TensorFlow's."""

from typing import Any

import numpy as np
import pytest

from opkernel.errors import FailedPreconditionError, InvalidArgumentError
from opkernel.kernel import Step, TensorAndKey
from opkernel.testing import run_op
from opkernel.types import ResourceHandle, float32


class Kept:
    """The tensors of a session, and those of a step (fulfils SessionState and TensorStore)."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}
        self.store: dict[str, TensorAndKey] = {}

    def get_new_id(self) -> int:
        return 41

    def get_tensor(self, handle: str) -> Any:
        return self.state[handle]

    def delete_tensor(self, handle: str) -> None:
        del self.state[handle]

    def add_tensor(self, name: str, tensor: Any) -> None:
        self.store[name] = tensor


@pytest.fixture
def step() -> Step:
    """A step of a session that keeps one tensor under the handle `h`."""
    made, kept = Step(), Kept()
    kept.state["h"] = np.float32([7])
    made.session_state = made.tensor_store = kept
    return made


def handle(text: bytes) -> np.ndarray[Any, Any]:
    return np.array(text, object)


def test_a_tensor_is_left_to_the_session_under_a_handle(step: Step) -> None:
    given = np.array([1, 2], np.float32)
    result = run_op("GetSessionHandle", [given], step=step)
    given[:] = 0
    ((name, kept),) = step.tensor_store.store.items()
    device = result.kernel.device.name
    assert result.outputs[0][()] == f"{name};41;{device}".encode()
    assert kept.get_handle("other") == f"other;41;{device}"
    assert kept.tensor.tolist() == [1, 2]
    assert not kept.tensor.flags.writeable


def test_a_resource_handle_names_the_tensor(step: Step) -> None:
    (output,) = run_op("GetSessionHandleV2", [np.float32(1)], step=step).outputs
    found = output[()]
    assert isinstance(found, ResourceHandle)
    assert (found.container, found.maybe_type_name) == ("TensorHandle", "TensorHandle")
    assert ";41;" in found.name


def test_a_tensor_is_found_and_forgotten(step: Step) -> None:
    attrs = {"dtype": float32}
    assert run_op("GetSessionTensor", [handle(b"h")], attrs=attrs, step=step).outputs[0] == [7]
    run_op("DeleteSessionTensor", [handle(b"h")], step=step)
    assert step.session_state.state == {}


def test_wrong_handles_and_no_session(step: Step) -> None:
    attrs = {"dtype": float32}
    with pytest.raises(InvalidArgumentError, match="handle must be scalar"):
        run_op("GetSessionTensor", [np.array([b"h"], object)], attrs=attrs, step=step)
    for op, value in (
        ("GetSessionHandle", np.float32(1)),
        ("GetSessionHandleV2", np.float32(1)),
        ("DeleteSessionTensor", handle(b"h")),
    ):
        with pytest.raises(FailedPreconditionError, match="called on null session state"):
            run_op(op, [value])
