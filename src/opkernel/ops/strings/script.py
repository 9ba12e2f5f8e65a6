"""UnicodeScript: to which script each character belongs.

`scripts.txt` (written by tools/record_unicode_tables.py) has the runs of code points of one script.

Source: TensorFlow core/ops/string_ops.cc, core/kernels/unicode_script_op.cc.
"""

import functools
from pathlib import Path
from typing import Any

import numpy as np

from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.ops.registration import register_kernel

UNICODE_SCRIPT = register_op(
    "UnicodeScript",
    inputs=["input: int32"],
    outputs=["output: int32"],
    shape_fn=unchanged_shape,
    doc="ICU's number of the script of each code point; -1 for what is none.",
)


@functools.cache
def _runs() -> tuple[Any, Any]:
    """Where the runs begin, and the script of each, with what is no code point around."""
    lines = Path(__file__).with_name("scripts.txt").read_text("ascii").splitlines()
    runs = [line.split() for line in lines]
    starts = [int(start, 16) for start, _ in runs]
    scripts = [int(script) for _, script in runs]
    return np.array([*starts, 0x110000], np.int32), np.array([-1, *scripts, -1], np.int32)


@register_kernel(UNICODE_SCRIPT, device="CPU")
def unicode_script(input: Any) -> Any:
    starts, scripts = _runs()
    return np.asarray(scripts[np.searchsorted(starts, input, side="right")])
