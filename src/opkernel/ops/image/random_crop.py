"""RandomCrop: a part of an image of a given size, at a random place.

Source: TensorFlow core/ops/image_ops.cc, core/kernels/image/random_crop_op.cc.
"""

from opkernel.errors import FailedPreconditionError, InvalidArgumentError
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext
from opkernel.opdef import InferenceContext, register_op
from opkernel.ops.input_checks import require_equal, require_rank
from opkernel.ops.kernel_types import REAL_NUMBERS
from opkernel.ops.random.filling import GuardedPhilox
from opkernel.ops.random.stateful import SEEDS
from opkernel.ops.registration import register_kernel


def random_crop_shape(c: InferenceContext) -> None:
    """[height, width, channels] -> with the height and width that input 1 holds."""
    image = c.with_rank(c.input(0), 3)
    c.merge(c.input(1), c.vector(2))
    size = c.input_tensor(1)
    dims = [None, None] if size is None else size.tolist()
    c.set_output(0, c.make_shape([*dims, c.dim(image, -1)]))


register_op(
    "RandomCrop",
    inputs=["image: T", "size: int64"],
    outputs=["output: T"],
    attrs=["T: {uint8, int8, int16, int32, int64, float, double}", *SEEDS],
    shape_fn=random_crop_shape,
    is_stateful=True,
    deprecated=(8, "Random crop is now pure Python"),
    doc="A part of an image of the given size, at a random place.",
)


@register_kernel("RandomCrop", types={"T": REAL_NUMBERS})
class RandomCrop(OpKernel):
    """Draws the place by the kernel's own stream."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._generator = GuardedPhilox(construction)

    def compute(self, ctx: OpKernelContext) -> None:
        """Cut the part out."""
        image, size = ctx.input(0), ctx.input(1)
        require_rank(image, 3, "input must be 3-dimensional{}")
        require_equal(size.shape, (2,), "size must have two elements{}")
        rows, columns = (int(one) for one in size)
        if rows < 0 or columns < 0:
            raise InvalidArgumentError(f"Dimensions must be >= 0, got {rows} and {columns}")
        height, width = image.shape[:2]
        for name, whole, part in (("width", width, columns), ("height", height, rows)):
            if whole < part:
                raise FailedPreconditionError(
                    f"{name} must be >= target_{name}: {name} = {whole}, target_{name} = {part}"
                )
        words = iter(self._generator.reserve_words(2).blocks(1)[0].tolist())
        left = next(words) % (width - columns + 1) if width > columns else 0
        top = next(words) % (height - rows + 1) if height > rows else 0
        ctx.set_output(0, image[top : top + rows, left : left + columns].copy())
