"""ExtractJpegShape: the size of a JPEG image, from its header alone.

Source: TensorFlow core/ops/image_ops.cc, core/kernels/image/extract_jpeg_shape_op.cc.
"""

from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import register_op
from opkernel.ops.declared.rules import fixed_shapes
from opkernel.ops.image.codecs.jpeg_header import jpeg_header
from opkernel.ops.kernel_types import INDEX
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType, TensorShape

EXTRACT_JPEG_SHAPE = register_op(
    "ExtractJpegShape",
    inputs=["contents: string"],
    outputs=["image_shape: output_type"],
    attrs=["output_type: {int32, int64} = DT_INT32"],
    shape_fn=fixed_shapes((3,), input_ranks=(0,)),
    doc="The height, width and channels of a JPEG file, without its pixels.",
)


@register_kernel(EXTRACT_JPEG_SHAPE, device="CPU", types={"output_type": INDEX})
def extract_jpeg_shape(contents: Any, *, output_type: DataType) -> Any:
    if contents.ndim:
        raise InvalidArgumentError(
            f"contents must be scalar, got shape {TensorShape(contents.shape)}"
        )
    header = jpeg_header(contents.item())
    return np.array([header.height, header.width, header.components], output_type.numpy_dtype)
