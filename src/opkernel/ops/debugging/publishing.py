"""Tensors that debug nodes publish: one file for each, which TensorFlow's debugger reads.

A file holds an Event, whose schema the package does not have, with the tensor and the name of what was watched.
Files need permission to write. Only `file://` is published to: nothing lets a graph use the network.

Source: TensorFlow core/debug/debug_io_utils.{h,cc}, debug_node_key.{h,cc}, core/kernels/debug_ops.h (BaseDebugOp).
"""

from __future__ import annotations

import itertools
import os
import re
import struct
import time
from collections.abc import Sequence
from typing import Any

from opkernel.device.permissions import Permissions
from opkernel.errors import (
    InternalError,
    InvalidArgumentError,
    OpError,
    PermissionDeniedError,
    UnavailableError,
)
from opkernel.escaping import json_text
from opkernel.file_errors import file_errors
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext
from opkernel.ops.parsing.tensors import serialized
from opkernel.records import dataclass
from opkernel.types import DataType
from opkernel.types.varints import varint

_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,20}\s*", re.ASCII)
FILE_URL, _GRPC, _MEMORY = "file://", "grpc://", "memcbk://"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL


@dataclass(frozen=True)
class DebugNode:
    """What a debug node watches, and with which op.

    Attributes:
        device: The name of the device of the watched node.
        node: Its name.
        slot: The number of its output.
        debug_op: The op of the debug node.
        io: Of a node whose inputs and outputs are watched, its name and the number, as `/x:in:2`; else empty.
    """

    device: str
    node: str
    slot: int
    debug_op: str
    io: str = ""

    def path(self, root: str, step_id: int) -> str:
        """The path of a file in `root`, without the time that it ends with."""
        if self.io:
            parts = ["node-io-dump", f"step-{step_id}", self.io.replace("/", "-")]
        else:
            device = self.device.replace(":", "_").replace("/", ",")
            parts = [f"_tfdbg_device_{device}", f"{self.node}_{self.slot}_{self.debug_op}"]
        return os.path.join(root, *(part.lstrip("/") for part in parts))

    def event(self, tensor: bytes, microseconds: int) -> bytes:
        """The serialized Event that has a serialized tensor."""
        device = json_text(self.device)
        content = f'{{"device":{device},"outputSlot":{self.slot},"numChunks":1,"chunkIndex":0}}'
        plugin = field(1, b"debugger") + field(2, utf8(content))
        name = f"{self.node}:{self.slot}:{self.debug_op}"
        value = field(1, utf8(self.node)) + field(7, utf8(name)) + field(8, tensor)
        summary = field(1, value + field(9, field(1, plugin)))
        return b"\x09" + struct.pack("<d", microseconds) + field(5, summary)


def utf8(text: str) -> bytes:
    """A text as a field of a message holds it."""
    return text.encode("utf-8", "backslashreplace")


def field(number: int, content: bytes) -> bytes:
    """A field of bytes of a message."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def node_and_slot(tensor_name: str) -> tuple[str, int]:
    """The name of a node, and the number of its output, in the name of a tensor: `node:1`.

    Raises:
        InvalidArgumentError: it is not a node's name, or one and a slot of 32 bits.
    """
    if not tensor_name or tensor_name.count(":") > 1:
        raise InvalidArgumentError(f'Failed to parse tensor name: "{tensor_name}"')
    node, colon, slot = tensor_name.partition(":")
    number = slot if colon else "0"
    if not _INTEGER.fullmatch(number) or not -(2**31) <= int(number) < 2**31:
        raise InvalidArgumentError(f'Invalid string value for output_slot: "{number}"')
    return node, int(number)


def is_closed(is_gated: bool, urls: Sequence[str]) -> bool:
    """Whether a node computes nothing: only servers, which would have to ask for it, get its tensor."""
    return is_gated and all(url.startswith(_GRPC) for url in urls)


class DebugKernel(OpKernel):
    """A kernel that publishes a tensor at the places of the attr `debug_urls`.

    Raises:
        InvalidArgumentError: the attr `tensor_name` names no tensor.
    """

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        get = construction.get_attr
        self._urls: list[str] = get("debug_urls")
        self._is_gated: bool = get("gated_grpc")
        self.is_closed = is_closed(self._is_gated, self._urls)
        node, slot = node_and_slot(get("tensor_name"))
        self.watched = DebugNode(get("device_name"), node, slot, self.type_string)

    def publish(self, ctx: OpKernelContext, tensor: Any, dtype: DataType) -> None:
        """Write a tensor of a type to all places.

        Raises:
            PermissionDeniedError: a file may not be written, or a place is a server.
            UnavailableError: a place is of an unknown kind.
            InternalError: files could not be written.
        """
        failures: list[str] = []
        for url in self._urls:
            scheme = url[: url.find("//") + 2].lower()
            if scheme == FILE_URL:
                path = self.watched.path(url[len(FILE_URL) :], ctx.step_id)
                ctx.permissions.check_write(path)
                content = serialized(tensor, dtype)
                failures += _failures(ctx.permissions, self.watched, path, content)
            elif scheme == _GRPC:
                self._refuse_server(url)
            else:
                _refuse(url, scheme)
        if failures:
            raise InternalError(
                f"Publishing to {len(failures)} of {len(self._urls)} debug target URLs failed, due "
                f"to the following errors: {'; '.join(failures)}"
            )

    def _refuse_server(self, url: str) -> None:
        """Raise PermissionDeniedError unless the server would have to ask for the tensor."""
        if not self._is_gated:
            raise PermissionDeniedError(
                f"{url!r}: a graph may not send tensors to a server. Debug nodes publish to file:// only"
            )


def _refuse(url: str, scheme: str) -> None:
    if scheme == _MEMORY:
        raise InvalidArgumentError(f"No callback registered for: {url[len(_MEMORY) :]}")
    raise UnavailableError(f"Invalid debug target URL: {url}")


def _failures(permissions: Permissions, node: DebugNode, path: str, tensor: bytes) -> Sequence[str]:
    """Write a file that does not exist yet; why it could not be written."""
    microseconds = time.time_ns() // 1000
    try:
        with file_errors(path):
            descriptor = _new_file(permissions, f"{path}_{microseconds}")
            with open(descriptor, "wb") as file:
                file.write(node.event(tensor, microseconds))
    except OpError as error:
        return [error.message]
    return []


def _new_file(permissions: Permissions, path: str) -> int:
    for number in itertools.count():
        name = f"{path}-{number}" if number else path
        directory, last = permissions.place_to_write(name, makes=len(name))
        with directory:
            try:
                return directory.open(last, _NEW)
            except FileExistsError:
                continue
    raise AssertionError("there is always another name")
