"""Names of the parts of a checkpoint: ShardedFilename, ShardedFilespec.

Source: TensorFlow core/ops/io_ops.cc, core/kernels/save_op.cc.
"""

from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import register_op
from opkernel.ops.declared.rules import scalar_inputs_and_outputs
from opkernel.ops.registration import register_kernel
from opkernel.types import TensorShape

SHARDED_FILENAME = register_op(
    "ShardedFilename",
    inputs=["basename: string", "shard: int32", "num_shards: int32"],
    outputs=["filename: string"],
    shape_fn=scalar_inputs_and_outputs,
    doc="The name of one part: `basename-00003-of-00010`.",
)

SHARDED_FILESPEC = register_op(
    "ShardedFilespec",
    inputs=["basename: string", "num_shards: int32"],
    outputs=["filename: string"],
    shape_fn=scalar_inputs_and_outputs,
    doc="The pattern of the names of all parts: `basename-?????-of-00010`.",
)


def _scalar(what: str, value: Any) -> Any:
    if value.ndim:
        raise InvalidArgumentError(f"{what} must be a scalar, not {TensorShape(value.shape)}")
    return value.item()


def _text(name: bytes, part: str, count: int) -> Any:
    result = np.empty((), object)
    result[()] = name + f"-{part}-of-{count:05d}".encode()
    return result


@register_kernel(SHARDED_FILENAME, device="CPU")
def sharded_filename(basename: Any, shard: Any, num_shards: Any) -> Any:
    part, count = _scalar("shard", shard), _scalar("num_shards", num_shards)
    return _text(_scalar("basename", basename), f"{part:05d}", count)


@register_kernel(SHARDED_FILESPEC, device="CPU")
def sharded_filespec(basename: Any, num_shards: Any) -> Any:
    return _text(_scalar("basename", basename), "?????", _scalar("num_shards", num_shards))
