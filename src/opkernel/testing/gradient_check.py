"""check_gradient: the gradient function of an op against finite differences, at points that an author chooses.

`check_call_gradient` makes the same assertion on calls that are drawn. Elements at which the op has no derivative, or is
not defined, do not count there: finite differences to both sides, or of several steps, contradict each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from opkernel.errors import OpError
from opkernel.gradients import look_up_gradient
from opkernel.gradients.registry import (
    has_gradient_entry,
    is_of_catalogue,
    misspelt,
    why_not_derivative,
)
from opkernel.opdef import OpRegistrationData
from opkernel.testing.gradient_call import GradientCall
from opkernel.testing.op_call import CheckFailure, OpCall, call_of
from opkernel.testing.op_runs import Inputs
from opkernel.testing.tolerance import Tolerance
from opkernel.types import Array, DataType, as_dtype

_DELTAS = {
    DataType.DT_DOUBLE: (1e-6, Tolerance(1e-5, 1e-6)),
    DataType.DT_FLOAT: (2.0**-7, Tolerance(2e-2, 1e-2)),
    DataType.DT_HALF: (2.0**-3, Tolerance(0.2, 0.2)),
    DataType.DT_BFLOAT16: (2.0**-2, Tolerance(0.4, 0.4)),
}
"""The step for a type and how far the differences may be off, the most precise type first.

The step is about the cube root of the type's rounding, where the error of the rounding, `eps / step`, and the
error of the difference, `step ** 2`, are about the same; each is then a tenth of the tolerance or less. For
halves that is enough to tell a wrong factor from rounding.
"""


def check_gradient(
    op: str,
    inputs: Inputs,
    attrs: Mapping[str, Any] | None = None,
    *,
    without: Sequence[int] = (),
    outputs: Sequence[int] | None = None,
    delta: float | None = None,
    tolerance: Tolerance | None = None,
) -> None:
    """Assert that the gradients of an op agree with finite differences.

    The op's outputs are weighted at random and added up. All inputs of floats and complex numbers
    are differentiated: once with their shapes known to the graph and all others constants, and once
    with unknown shapes and values.

        check_gradient("MatMul", [np.ones((2, 3)), np.ones((3, 4))])

    Args:
        op: the op's name.
        inputs: arrays, float64 or complex128 where a derivative is wanted, float32 or complex64
            where the op takes nothing else; by argument or in order, a list for a list argument.
            Keep away from where the op has no derivative.
        attrs: attrs that do not follow from the inputs.
        without: flat numbers of inputs not to differentiate by.
        outputs: flat numbers of the outputs to differentiate; all if None.
        delta: the step of the finite differences; if None, 1e-6, or a longer one where inputs or
            outputs are of less precise types than double.
        tolerance: how far the two may differ; as goes with the type if None.

    Raises:
        CheckFailure: an AssertionError: they differ; the message names the input and element.
        NotFoundError: the op has no gradient function.
    """
    look_up_gradient(op)
    call = call_of(op, inputs, attrs or {})
    compare_gradients(call, without=without, outputs=outputs, delta=delta, tolerance=tolerance)


def compare_gradients(
    call: OpCall,
    *,
    without: Sequence[int] = (),
    outputs: Sequence[int] | None = None,
    delta: float | None = None,
    tolerance: Tolerance | None = None,
    max_elements: int | None = None,
    everywhere: bool = True,
) -> int:
    """Compare the gradients of a call with finite differences, as `check_gradient` says.

    Args:
        call: the call.
        without: as there, like the next three.
        outputs: as there.
        delta: as there.
        tolerance: as there.
        max_elements: by how many elements of each input to differentiate; all if None.
        everywhere: whether the op has a derivative at each element. If not, elements do not count
            at which finite differences contradict each other.

    Returns:
        How many elements were compared.

    Raises:
        CheckFailure: they differ.
        OpError: the kernel refuses the call.
        UnimplementedError: the gradient of such a call is not implemented.
    """
    forms = [GradientCall(call, outputs, shapes_known=known) for known in (True, False)]
    wanted = [index for index in forms[0].trainable if index not in without]
    step, usual = _precision(forms[0], wanted)
    differences = _Differences(forms[0], step if delta is None else delta)
    compared = 0
    for form in forms:
        gradients = form.gradients(wanted, differences.weights)
        for index, gradient in zip(wanted, gradients, strict=True):
            comparison = _Comparison(form, differences, index, tolerance or usual, everywhere)
            compared += comparison.run(gradient, max_elements)
    return compared


def is_precise(dtype: DataType) -> bool:
    """Whether finite differences of a type say anything."""
    return _real(dtype) in _DELTAS


def _precision(form: GradientCall, wanted: Sequence[int]) -> tuple[float, Tolerance]:
    """The step, and the tolerance, for the least precise of the types that take part."""
    types = [form.call.input_types[index] for index in wanted] + [y.dtype for y in form.ys]
    return max(map(_DELTAS.__getitem__, map(_real, types)), default=_DELTAS[DataType.DT_DOUBLE])


def _real(dtype: DataType) -> DataType:
    """The type of the parts of a complex type; others as they are."""
    return as_dtype(np.empty(0, dtype.numpy_dtype).real.dtype) if dtype.is_complex else dtype


class _Differences:
    """Finite differences of the weighted outputs of a call; outputs that are not finite weigh nothing.

    Attributes:
        weights: the weights of the outputs.
        step: the step.
    """

    def __init__(self, form: GradientCall, step: float) -> None:
        self._form = form
        self._inputs = form.call.inputs
        self._base = form.outputs(self._inputs)
        self._slopes: dict[Any, tuple[float, float, float]] = {}
        self.weights = [np.where(np.isfinite(y), _weight(y), 0) for y in self._base]
        self.is_finite = all(np.all(weight != 0) for weight in self.weights)
        self.step = step

    def slope(self, index: int, place: tuple[int, ...], direction: complex = 1) -> float:
        """The central difference; NaN where a step leaves the domain."""
        return self._slopes_at(index, place, direction * self.step)[0]

    def doubt(self, index: int, place: tuple[int, ...], direction: complex = 1) -> float:
        """How much one-sided differences, and differences of other steps, deviate from `slope`."""
        steps = [factor * direction * self.step for factor in (1, 4, 2**-2, 2**-4)]
        found = [self._slopes_at(index, place, step) for step in steps]
        others = [*found[0][1:], *(slopes[0] for slopes in found[1:])]
        return max(abs(other - found[0][0]) for other in others)

    def _slopes_at(
        self, index: int, place: tuple[int, ...], step: complex
    ) -> tuple[float, float, float]:
        """The central difference, that ahead and that behind."""
        key = index, place, step
        if key not in self._slopes:
            ahead, behind = self._change(index, place, step), -self._change(index, place, -step)
            self._slopes[key] = (ahead + behind) / 2, ahead, behind
        return self._slopes[key]

    def _change(self, index: int, place: tuple[int, ...], step: complex) -> float:
        """The change of the weighted sum on a step, divided by its length as rounded."""
        moved = np.array(self._inputs[index])
        moved[place] += step
        length = abs(complex(moved[place]) - complex(self._inputs[index][place]))
        try:
            values = self._form.outputs([*self._inputs[:index], moved, *self._inputs[index + 1 :]])
        except OpError:  # out of its domain
            return np.nan
        if any(y.shape != base.shape for y, base in zip(values, self._base, strict=True)):
            return np.nan
        parts = zip(self.weights, values, self._base, strict=True)
        with np.errstate(all="ignore"):
            changes = [np.conj(w) * np.where(w == 0, 0, y - base) for w, y, base in parts]
        return float(sum(np.sum(change.real) for change in changes)) / (length or np.nan)


@dataclass
class _Comparison:
    """The gradient of one input beside the finite differences."""

    form: GradientCall
    differences: _Differences
    index: int
    tolerance: Tolerance
    everywhere: bool
    _value: Array = field(init=False)

    def __post_init__(self) -> None:
        self._value = np.asarray(self.form.call.inputs[self.index])

    def run(self, gradient: Array | None, max_elements: int | None) -> int:
        """Compare; the result is the number of elements at which that was possible."""
        found = np.zeros(self._value.shape, np.complex128) if gradient is None else gradient
        return sum(
            self._agrees_at(place, found[place], is_none=gradient is None)
            for place in _places(self._value.shape, max_elements)
        )

    def _agrees_at(self, place: tuple[int, ...], found: Any, *, is_none: bool) -> bool:
        """Compare one element; False where finite differences say nothing."""
        parts = [(1, found.real), (1j, found.imag)][: 1 + np.iscomplexobj(self._value)]
        slopes = [self.differences.slope(self.index, place, way) for way, _ in parts]
        if not self.everywhere and not (np.all(np.isfinite(slopes)) and self._says(found)):
            return False
        for (way, part), slope in zip(parts, slopes, strict=True):
            error = abs(part - slope)
            rtol, atol = self.tolerance
            allowed = atol + rtol * abs(slope)
            if error <= allowed:
                continue
            if not self.everywhere and np.isfinite(part):
                doubt = self.differences.doubt(self.index, place, way)
                if not error > allowed + 2 * doubt:  # the doubt may be NaN
                    return False
            raise self._failure(place, slopes, None if is_none else found)
        return True

    def _says(self, found: Any) -> bool:
        """Whether a gradient counts: one that is not finite may come from such outputs."""
        return self.differences.is_finite or bool(np.isfinite(found))

    def _failure(self, place: tuple[int, ...], slopes: Sequence[float], found: Any) -> Exception:
        numeric = complex(*slopes) if len(slopes) > 1 else slopes[0]
        at = f" at {list(place)}" if place else ""
        return self.form.failure(
            f"the gradient of {self.form.name_of(self.index)}{at} is {found}, finite differences "
            f"of {self.differences.step:.1g} give {numeric:.6g}"
        )


def _places(shape: tuple[int, ...], most: int | None) -> Iterator[tuple[int, ...]]:
    """Places of a shape; spread over it where they are not all."""
    size = int(np.prod(shape, dtype=np.int64))
    numbers = range(size) if most is None or size <= most else range(0, size, -(-size // most))
    return (tuple(map(int, np.unravel_index(number, shape))) for number in numbers)


def _weight(value: Array) -> Array:
    """Numbers of both signs, none of them near zero, the same at every call."""
    random = np.random.default_rng(value.size)
    weight = random.uniform(0.5, 1.5, value.shape) * random.choice([-1, 1], value.shape)
    if np.iscomplexobj(value):
        weight = weight + 1j * random.uniform(0.5, 1.5, value.shape)
    return np.asarray(weight)


_MAX_ELEMENTS = 24
"""By how many elements of an input to differentiate: each takes two computations of the op."""


def check_call_gradient(call: OpCall) -> int:
    """Check the gradient of a call; the result is the number of elements at which it was compared.

    Raises:
        CheckFailure: the gradient is wrong.
    """
    try:
        return _compare(call)
    except OpError:
        return 0


def gradient_refusal(call: OpCall) -> str:
    """The error with which the kernel or the gradient refuses a call; empty where neither does."""
    try:
        _compare(call)
    except OpError as error:
        return f"{error.code.name}: {error.message.splitlines()[0]}"
    return ""


def _compare(call: OpCall) -> int:
    """Compare gradients; OpError where the kernel refuses the call, or its gradient is not known."""
    call.infer_shapes()
    try:
        with np.errstate(all="ignore"):
            return compare_gradients(call, max_elements=_MAX_ELEMENTS, everywhere=False)
    except CheckFailure as failure:
        # Gradients of the catalogue refuse the same calls as TensorFlow's.
        if isinstance(failure.__cause__, OpError) and is_of_catalogue(call.node_def.op):
            raise failure.__cause__ from failure
        raise


def why_no_gradient(registration: OpRegistrationData) -> str:
    """Why the gradient of an op is not checked; empty where it is."""
    op_def = registration.op_def
    if not has_gradient_entry(op_def.name):
        return f"none is registered{misspelt(op_def.name)}"
    if look_up_gradient(op_def.name) is None:
        return "no_gradient says that there is none"
    if reason := why_not_derivative(op_def.name):
        return reason
    if op_def.is_stateful:
        return "the op is stateful"
    if any(arg.is_ref for arg in op_def.input_arg):
        return "the op takes references"
    return ""
