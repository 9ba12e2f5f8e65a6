"""The debugger's nodes in graphs that were saved with it: DebugIdentity and its later versions.

Without `debug_urls` they pass their input on, and that is all that they do here.
Source: TensorFlow core/ops/debug_ops.cc, core/kernels/debug_ops.h.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import forward_input
from opkernel.opdef import OpHandle, register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.ops.registration import register_kernel

_URLS = "debug_urls: list(string) = []"
_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,20}\s*", re.ASCII)


def _declare(version: str, *attrs: str, **declared: Any) -> OpHandle:
    return register_op(
        f"DebugIdentity{version}",
        inputs=["input: T"],
        outputs=["output: T"],
        attrs=["T: type", *attrs],
        shape_fn=unchanged_shape,
        doc="`input`, which a debugger may be shown.",
        traits="writes_files file_attr=debug_urls",
        **declared,
    )


DEBUG_IDENTITY = _declare(
    "",
    "device_name: string = ''",
    "tensor_name: string = ''",
    _URLS,
    "gated_grpc: bool = false",
    allows_uninitialized_input=True,
)
DEBUG_IDENTITY_V2 = _declare(
    "V2",
    "tfdbg_context_id: string = ''",
    "op_name: string = ''",
    "output_slot: int = -1",
    "tensor_debug_mode: int = -1",
    _URLS,
    "circular_buffer_size: int = 1000",
    "tfdbg_run_id: string = ''",
    is_stateful=True,
)
DEBUG_IDENTITY_V3 = _declare(
    "V3",
    "device_name: string = ''",
    "tensor_name: string = ''",
    "io_of_node: string = ''",
    "is_input: bool = false",
    "io_index: int = -1",
    _URLS,
    "gated_grpc: bool = false",
    is_stateful=True,
    allows_uninitialized_input=True,
)


def debug_identity(*, tensor_name: str, debug_urls: list[str]) -> Callable[[Any], Any]:
    """The kernel of the versions that name the tensor they watch."""
    _check_tensor_name(tensor_name)
    return debug_identity_v2(debug_urls=debug_urls)


def _check_tensor_name(name: str) -> None:
    """Raise InvalidArgumentError unless it is a node's name, or one and a slot of 32 bits."""
    if not name or name.count(":") > 1:
        raise InvalidArgumentError(f'Failed to parse tensor name: "{name}"')
    slot = name.partition(":")[2] if ":" in name else "0"
    if not _INTEGER.fullmatch(slot) or not -(2**31) <= int(slot) < 2**31:
        raise InvalidArgumentError(f'Invalid string value for output_slot: "{slot}"')


def debug_identity_v2(*, debug_urls: list[str]) -> Callable[[Any], Any]:
    if debug_urls:
        raise UnimplementedError(
            f"Debug nodes cannot publish tensors: debug_urls must be empty, not {debug_urls}"
        )
    return forward_input


register_kernel(DEBUG_IDENTITY, kind="view", factory=True)(debug_identity)
register_kernel(DEBUG_IDENTITY_V2, kind="view", factory=True)(debug_identity_v2)
register_kernel(
    DEBUG_IDENTITY_V3,
    device="DEFAULT",
    host_memory=["input", "output"],
    kind="view",
    factory=True,
)(debug_identity)


@g.register_gradient("DebugIdentityV2")
def debug_identity_gradient(op: g.Operation, grad: g.Gradient) -> g.Gradients:
    return grad
