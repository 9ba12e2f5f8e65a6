"""FileSystemSetConfiguration: options of file systems, of which local files have none.

Source: TensorFlow core/ops/io_ops.cc, core/kernels/io.cc, core/platform/env.cc.
"""

from typing import Any

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.opdef import no_outputs, register_op
from opkernel.ops.registration import register_kernel
from opkernel.types import TensorShape

_LOCAL = ("", "file", "ram")

FILE_SYSTEM_SET_CONFIGURATION = register_op(
    "FileSystemSetConfiguration",
    inputs=["scheme: string", "key: string", "value: string"],
    is_stateful=True,
    shape_fn=no_outputs,
    doc="Sets an option of a file system. It always fails: no file system has options.",
)


@register_kernel(FILE_SYSTEM_SET_CONFIGURATION, device="CPU")
def file_system_set_configuration(scheme: Any, key: Any, value: Any) -> None:
    for name, one in (("scheme", scheme), ("key", key), ("value", value)):
        if one.ndim:
            raise InvalidArgumentError(f"{name} must be scalar, got shape {TensorShape(one.shape)}")
    text = scheme.item().decode("utf-8", "surrogateescape")
    if text not in _LOCAL:
        raise UnimplementedError(f"File system scheme '{text}' not found to set configuration")
    raise UnimplementedError(f"SetOption: the file system '{text}' has no options")
