"""check_device: whether a device type keeps the rules that sessions rely on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from opkernel.device.device_factory import DeviceOptions, device_factory, device_types
from opkernel.device.local_device import LocalDevice
from opkernel.errors import InvalidArgumentError
from opkernel.graph import Graph, Tensor, placeholder
from opkernel.kernel import supported_device_types_for_node
from opkernel.runtime import Session
from opkernel.runtime.session.session_config import SessionConfig
from opkernel.types import Array, DataType

_SHAPES = [(), (0,), (3,), (2, 0, 4), (2, 3, 4)]
_DTYPES = ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "?", "c8", "c16"]
_UNARY = ["Identity", "Neg", "Abs", "Relu", "Exp", "Tanh", "Square"]
_BINARY = ["AddV2", "Sub", "Mul", "MatMul"]
_INPUT = np.array([[1.5, -2], [0, 0.25]], "f4")


def check_device(device_type: str) -> None:
    """Check the devices of a type, as sessions use them.

    Devices must have full names numbered from 0, incarnations of their own, and give back what they
    were given. Ops that the type has kernels for (those of a few: Identity, Neg, AddV2, MatMul, ...)
    must compute on two of its devices what they compute on the host, with feeds and fetches that are
    arrays, and alike in plans and in the dataflow executor.

    Raises:
        AssertionError: a rule is broken; the message says which.
        NotFoundError: the type has no factory.
    """
    devices = device_factory(device_type).create_devices(DeviceOptions(2))
    _check_names(device_type, devices)
    for device in devices:
        for array in _arrays():
            _check_round_trip(device, array)
        device.close()
    _check_steps(device_type)
    _check_errors(device_type)


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise AssertionError(what)


def _check_names(device_type: str, devices: Sequence[LocalDevice]) -> None:
    names = [device.name for device in devices]
    wanted = [f"/job:localhost/replica:0/task:0/device:{device_type}:{n}" for n in range(2)]
    _require(names == wanted, f"two devices were asked for: their names are {names}, not {wanted}")
    for device in devices:
        found = device.device_type
        _require(found == device_type, f"{device.name} says that its type is {found}")
        has_factory = re.fullmatch(r"[A-Z][A-Z0-9_]*", found) is not None
        _require(has_factory, f"{found} is no device type: letters, digits and _ in capitals")
    numbers = {device.incarnation for device in devices}
    _require(len(numbers) == 2 and 0 not in numbers, "devices share an incarnation, or have none")


def _arrays() -> Iterator[Array]:
    for dtype in _DTYPES:
        for shape in _SHAPES:
            yield (np.arange(np.prod(shape, dtype=int)) % 2).reshape(shape).astype(dtype)
    yield np.arange(12, dtype="f4").reshape(3, 4).T  # not contiguous


def _check_round_trip(device: LocalDevice, array: Array) -> None:
    what = f"{device.name}: {array.dtype}{list(array.shape)}"
    given = array.copy()
    tensor = device.to_device(given)
    kept = tuple(tensor.shape) == array.shape and tensor.dtype == array.dtype
    _require(kept, f"{what} has another shape or type on the device")
    if device.has_own_memory and given.size:
        given[...] = 0
    back = device.to_host(tensor)
    _require(isinstance(back, np.ndarray | np.generic), f"{what} comes back as {type(back)}")
    same = back.dtype == array.dtype and np.array_equal(back, array)
    _require(same and back.shape == array.shape, f"{what} comes back as another: {back!r}")


def _check_steps(device_type: str) -> None:
    for executor in ("", "COMPILED_PLAN", "DATAFLOW"):
        expected, _ = _run("CPU", executor, [*_UNARY, *_BINARY])
        names = [op for op in expected if _has_kernel(device_type, op)]
        found, where = _run(device_type, executor, names)
        for op, value in found.items():
            what = f"{op} on {device_type}"
            _require(where[op], f"{what} was not placed there")
            is_array = isinstance(value, np.ndarray | np.generic)
            _require(is_array, f"{what} is fetched as a {type(value).__name__}")
            close = np.allclose(value, expected[op], rtol=1e-4, atol=1e-5)
            _require(close, f"{what} gives {value}, the host {expected[op]}")


def _run(
    device_type: str, executor: str, ops: Sequence[str]
) -> tuple[dict[str, Any], dict[str, bool]]:
    """The results of ops on two devices in turn, and whether the devices were there."""
    graph, fetches = Graph(), dict[str, Tensor]()
    with graph.as_default():
        x = placeholder(DataType.DT_FLOAT, [None, 2], name="x")
        for index, op in enumerate(ops):
            with graph.device(f"/device:{device_type}:{index % 2}"):
                inputs = [x, x] if op in _BINARY else [x]
                fetches[op] = graph.create_op(op, inputs, name=op).outputs[0]
    config = SessionConfig(device_count={"CPU": 2, device_type: 2})
    with Session(graph, config=config, executor_type=executor) as session:
        values = session.run(fetches, {x: _INPUT})
        source = session.plan(fetches, [x]).source
    return values, {op: f"device:{device_type}:{i % 2}" in source for i, op in enumerate(ops)}


def _has_kernel(device_type: str, op: str) -> bool:
    graph = Graph()
    with graph.as_default():
        x = placeholder(DataType.DT_FLOAT, [None, 2])
        node = graph.create_op(op, [x, x] if op in _BINARY else [x]).node_def
    found = supported_device_types_for_node([device_type], node, op_registry=graph.op_registry)
    return bool(found)


def _check_errors(device_type: str) -> None:
    _require(device_type in device_types(), f"{device_type} has no factory any more")
    graph = Graph()
    with graph.as_default(), graph.device(f"/device:{device_type}:7"):
        y = graph.create_op("NoOp", [])
    config = SessionConfig(device_count={device_type: 1})
    with Session(graph, config=config) as session, suppress(InvalidArgumentError):
        session.run(y)
        raise AssertionError(f"a node is on {device_type}:7 of 1, and nobody says so")
