"""Random parts of images that cover boxes: SampleDistortedBoundingBox and its kin.

Source: TensorFlow core/ops/image_ops.cc, core/kernels/image/sample_distorted_bounding_box_op.cc.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from opkernel.device.made_bytes import making_bytes
from opkernel.device.work_clock import array_work, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import (
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
    from_attrs,
)
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes.rules import shape_rule
from opkernel.ops.input_checks import (
    int32_attr,
    require,
    require_equal,
    require_rank,
    require_scalar,
    require_vector,
)
from opkernel.ops.random.inputs import check_seed, of_seed
from opkernel.ops.random.philox import GuardedPhilox, Philox, ScalarDraws
from opkernel.ops.random.uniform_and_normal import SEEDS
from opkernel.ops.registration import INTEGERS, register_kernel
from opkernel.types import Array, TensorShape

_F = np.float32
_INT32_MAX = 2**31 - 1
_WORDS_PER_ATTEMPT = 4
_AT_ONCE = 1 << 14
"""So many boxes are looked at together."""
_OF_BOX = 128
"""The bytes of the arrays that are computed of a box."""


_ATTRS = [
    "aspect_ratio_range: list(float) = [0.75, 1.33]",
    "area_range: list(float) = [0.05, 1]",
    "max_attempts: int = 100",
    "use_image_if_no_bounding_boxes: bool = false",
]

for _name, _more, _shapes, _attrs in (
    ("SampleDistortedBoundingBox", "", "", [*SEEDS, "min_object_covered: float = 0.1"]),
    ("SampleDistortedBoundingBoxV2", ", min_object_covered: float", ", []", SEEDS),
    (
        "StatelessSampleDistortedBoundingBox",
        ", min_object_covered: float, seed: Tseed",
        ", [], [2]",
        ["Tseed: {int32, int64}"],
    ),
):
    register_op(
        f"{_name}(image_size: T, bounding_boxes: float{_more}) -> begin: T, size: T, bboxes: float",
        attrs=["T: {uint8, int8, int16, int32, int64}", *_attrs, *_ATTRS],
        shape_fn=shape_rule(f"[3], [?, ?, 4]{_shapes} -> [3], [3], [1, 1, 4]"),
        is_stateful="Stateless" not in _name,
        doc="A random part of an image that covers enough of one of the boxes; all of it if none is found.",
    )


class Box(NamedTuple):
    """A part of an image, in pixels."""

    left: int
    top: int
    right: int
    bottom: int

    @property
    def area(self) -> Any:
        """As float."""
        return _F((self.right - self.left) * (self.bottom - self.top))


class _Objects(NamedTuple):
    """Boxes in pixels, a vector for each edge."""

    left: Array
    top: Array
    right: Array
    bottom: Array

    @classmethod
    def of(cls, boxes: Any, height: int, width: int) -> _Objects:
        """Those that stand for shares of an image."""
        scale = np.array([height, width, height, width], _F)
        top, left, bottom, right = (boxes * scale).T.astype(np.int64, order="C")
        return cls(left, top, right, bottom)

    @property
    def areas(self) -> Array:
        """As float, rounded from double as Python's integers are."""
        return _areas(self.right - self.left, self.bottom - self.top)

    def covered_by(self, other: Box) -> Array:
        """The share of each that a box covers; -1 of those that have no pixel."""
        areas = self.areas
        width = np.minimum(self.right, other.right) - np.maximum(self.left, other.left)
        height = np.minimum(self.bottom, other.bottom) - np.maximum(self.top, other.top)
        common = _areas(np.maximum(width, 0), np.maximum(height, 0))
        return np.divide(common, areas, out=np.full(areas.shape, _F(-1)), where=areas >= 1)


def _areas(widths: Array, heights: Array) -> Array:
    return (widths * heights).astype(np.float64).astype(_F)


class Limits(NamedTuple):
    """What the attrs of a node ask for."""

    ratios: tuple[float, float]
    areas: tuple[float, float]
    attempts: int
    whole_image: bool


def _limits(
    aspect_ratio_range: list[float],
    area_range: list[float],
    max_attempts: int,
    use_image_if_no_bounding_boxes: bool,
) -> Limits:
    """The attrs.

    Raises:
        InvalidArgumentError: they are out of range.
    """
    ratios, areas = aspect_ratio_range, area_range
    for name, pair in (("Aspect ratio", ratios), ("Area", areas)):
        require_equal(len(pair), 2, f"{name} range field must specify 2 dimensions")
        if not (pair[0] > 0 and pair[1] > 0):
            raise InvalidArgumentError(f"{name} range must be non-negative: {list(pair)}")
    if not (areas[0] <= 1 and areas[1] <= 1):
        raise InvalidArgumentError(f"Area range must be less then or equal to 1.0: {list(areas)}")
    int32_attr("max_attempts", max_attempts)
    require(max_attempts > 0, f"Max attempts must be non-negative: {max_attempts}")
    pairs = (ratios[0], ratios[1]), (areas[0], areas[1])
    return Limits(*pairs, max_attempts, use_image_if_no_bounding_boxes)


@register_kernel(
    "SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2", types={"T": INTEGERS}
)
class SampleDistortedBoundingBox(OpKernel):
    """Draws by the kernel's own stream."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._covered: float = 0
        if construction.num_inputs == 2:
            self._covered = construction.get_attr("min_object_covered")
            _check_covered(self._covered)
        names = [attr.partition(":")[0] for attr in _ATTRS]
        self._limits = _limits(*(construction.get_attr(name) for name in names))
        self._generator = GuardedPhilox(construction)

    def compute(self, ctx: OpKernelContext) -> None:
        """Draw a part."""
        random = self._generator.reserve_words(_WORDS_PER_ATTEMPT * self._limits.attempts)
        covered = _covered(ctx.input(2)) if ctx.num_inputs > 2 else self._covered
        outputs = _distorted(random, self._limits, ctx.input(0), ctx.input(1), covered)
        for index, output in enumerate(outputs):
            ctx.set_output(index, output)


@register_kernel("StatelessSampleDistortedBoundingBox", types={"T": INTEGERS}, factory=True)
@from_attrs(limits=_limits)
def stateless_sample_distorted_bounding_box(*, limits: Limits) -> Callable[..., Any]:
    def distorted(image_size: Any, bounding_boxes: Any, min_object_covered: Any, seed: Any) -> Any:
        check_seed(seed)
        covered = _covered(min_object_covered)
        return _distorted(of_seed(seed), limits, image_size, bounding_boxes, covered)

    return distorted


def _covered(given: Any) -> float:
    """How much of a box must be covered."""
    require_scalar(given, "min_object_covered must be 0-D, got shape {}")
    _check_covered(float(given))
    return float(given)


def _check_covered(covered: float) -> None:
    if not covered >= 0:
        raise InvalidArgumentError(f"Min object covered must be non-negative: {covered}")


def _distorted(
    random: Philox, limits: Limits, image_size: Any, boxes: Any, covered: float
) -> tuple[Array, Array, Array]:
    """Begin, size and box of the part that is drawn."""
    height, width = _image(image_size)
    image = Box(0, 0, width, height)
    _check_boxes(boxes)
    if not boxes.size and not limits.whole_image:
        raise InvalidArgumentError(
            "No bounding boxes provided as input. One must enable use_image_if_no_bounding_boxes "
            "if you wish to not provide any bounding boxes."
        )
    with making_bytes("boxes", _OF_BOX * boxes.size // 4):
        draws, objects = ScalarDraws(random), boxes.reshape(-1, 4)
        part = _first_fitting(draws, limits, image, objects, _F(covered)) or image
    kind = image_size.dtype
    begin = np.array([part.top, part.left, 0]).astype(kind)
    size = np.array([part.bottom - part.top, part.right - part.left, -1]).astype(kind)
    edges = np.array([part.top, part.left, part.bottom, part.right], _F)
    with np.errstate(all="ignore"):
        edges /= np.array([height, width, height, width], _F)
    return begin, size, edges.reshape(1, 1, 4)


def _image(image_size: Any) -> tuple[int, int]:
    require_vector(image_size, "image_size must be 1-dimensional{}")
    require_equal(image_size.shape, (3,), "image_size must contain 3 elements{}")
    height, width = int(image_size[0]), int(image_size[1])
    for name, size in (("height", height), ("width", width)):
        if not 0 <= size < _INT32_MAX:
            raise InvalidArgumentError(f"image {name} cannot be >= int32 max")
    return height, width


def _check_boxes(boxes: Any) -> None:
    """Raise InvalidArgumentError where they are no boxes, or leave the image."""
    require_rank(boxes, 3, "input boxes must be 3-dimensional [batch, num_boxes, coords]: {}")
    if boxes.shape[2] != 4:
        shape = TensorShape(boxes.shape)
        raise InvalidArgumentError(f"bounding boxes must have shape [4] or [*, 4], got {shape}")
    if boxes.size and not (boxes.min() >= 0 and boxes.max() <= 1):
        outside = boxes[~((boxes >= 0) & (boxes <= 1))]
        raise InvalidArgumentError(
            f"All bounding box coordinates must be in [0.0, 1.0]: {outside[0]}"
        )


def _first_fitting(
    draws: ScalarDraws, limits: Limits, image: Box, boxes: Array, covered: Any
) -> Box | None:
    """The first part that covers enough of an object; None where no attempt gives one.

    The objects are the boxes, or the image where there are none. Some are looked at, then more.
    """

    @functools.cache
    def objects(first: int) -> _Objects:
        if not boxes.size:
            return _Objects(*np.array([image]).T)
        return _Objects.of(boxes[first : first + _AT_ONCE], image.bottom, image.right)

    low, high = (_F(ratio) for ratio in limits.ratios)
    for _ in in_time(range(limits.attempts), array_work(len(boxes), 16)):
        ratio = _F(draws.uniform()) * (high - low) + low
        part = _part(draws, image.right, image.bottom, limits.areas, ratio)
        if part is None or part.area < 1:
            continue
        for first in range(0, max(len(boxes), 1), _AT_ONCE):
            if (objects(first).covered_by(part) >= covered).any():
                return part
    return None


def _part(
    draws: ScalarDraws, width: int, height: int, areas: tuple[float, float], ratio: Any
) -> Box | None:
    """A random part of a shape; None where no area of the range has it."""
    if width <= 0 or height <= 0 or ratio <= 0 or areas[0] > areas[1]:
        return None
    least, most = (_F(share) * _F(width) * _F(height) for share in areas)
    rows, most_rows = (_rounded(np.sqrt(area / ratio)) for area in (least, most))
    if _columns(most_rows, ratio) > width:
        most_rows = int(np.float32(width + 0.5 - np.float64(_F(1e-7))) / ratio)
        most_rows -= _columns(most_rows, ratio) > width
    most_rows = min(most_rows, height)
    rows = min(rows, most_rows)
    if rows < most_rows:
        rows += draws.below(most_rows - rows + 1)
    columns = _columns(rows, ratio)
    if _F(columns * rows) < least:
        rows += 1
        columns = _columns(rows, ratio)
    if _F(columns * rows) > most:
        rows -= 1
        columns = _columns(rows, ratio)
    is_inside = 0 < columns <= width and 0 < rows <= height
    if not is_inside or not least <= _F(columns * rows) <= most:
        return None
    top = draws.below(height - rows) if rows < height else 0
    left = draws.below(width - columns) if columns < width else 0
    return Box(left, top, left + columns, top + rows)


def _columns(rows: int, ratio: Any) -> int:
    return _rounded(_F(rows) * ratio)


def _rounded(number: Any) -> int:
    return int(np.rint(number))
