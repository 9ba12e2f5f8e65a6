"""Shape functions that check the inputs one by one, written as one character for each input.

`0` and `1` are ranks; `?` means rank 1 at most, `+` rank 1 at least. `h` means two elements: a handle
that is a vector of strings, container and name. `.` means anything. Inputs beyond the text are not
checked.
"""

from collections.abc import Callable

from opkernel.opdef import (
    InferenceContext,
    OpShapeInferenceFn,
    ShapeHandle,
    no_outputs,
    scalar_shape,
    unknown_shape,
)

__all__ = [
    "check_handle",
    "check_inputs",
    "checked",
    "checked_no_outputs",
    "checked_scalar",
    "checked_unknown",
]


def check_handle(c: InferenceContext, shape: ShapeHandle) -> None:
    """Refuse the shape of a handle that does not have two elements."""
    c.with_value(c.dim(c.with_rank(shape, 1), 0), 2)


_CHECKS: dict[str, Callable[[InferenceContext, ShapeHandle], object]] = {
    "0": lambda c, shape: c.with_rank(shape, 0),
    "1": lambda c, shape: c.with_rank(shape, 1),
    "?": lambda c, shape: c.with_rank_at_most(shape, 1),
    "+": lambda c, shape: c.with_rank_at_least(shape, 1),
    "h": check_handle,
    ".": lambda c, shape: None,
}


def check_inputs(c: InferenceContext, ranks: str) -> None:
    """Refuse the first input that is not what its character says."""
    for i, character in enumerate(ranks):
        _CHECKS[character](c, c.input(i))


def checked(ranks: str, then: OpShapeInferenceFn) -> OpShapeInferenceFn:
    """The shape function `then`, after a check of the inputs."""

    def shape_fn(c: InferenceContext) -> None:
        check_inputs(c, ranks)
        then(c)

    return shape_fn


def checked_no_outputs(ranks: str) -> OpShapeInferenceFn:
    """A shape function that only checks the inputs."""
    return checked(ranks, no_outputs)


def checked_scalar(ranks: str) -> OpShapeInferenceFn:
    """A shape function: after a check of the inputs, the output is a scalar."""
    return checked(ranks, scalar_shape)


def checked_unknown(ranks: str) -> OpShapeInferenceFn:
    """A shape function: after a check of the inputs, nothing is known of the outputs."""
    return checked(ranks, unknown_shape)
