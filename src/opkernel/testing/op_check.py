"""Test kernels with calls drawn from their op's declaration.

    check_op("ZeroOut")                                                     # in a pytest test
    check_op("Gather", inputs={"indices": arrays(np.int32, 3, elements=integers(0, 1))})

Calls that the shape function accepts are drawn, and every kernel of the op is computed on them
(`check_kernels` says what is checked); then its gradient function is compared with finite differences
(`gradient_check`). A call that fails is made as small as possible.

Needs hypothesis: `pip install opkernel[test]`.
"""

import contextlib
import io
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opkernel.errors import (
    DeadlineExceededError,
    FailedPreconditionError,
    OpError,
    UnimplementedError,
)
from opkernel.file_errors import checked_path
from opkernel.kernel import KernelRegistration, KernelRegistry, global_kernel_registry
from opkernel.libraries import check_installed
from opkernel.opdef import OpRegistrationData, OpRegistry, global_op_registry
from opkernel.testing.check_kernels import Checker
from opkernel.testing.gradient_check import check_call_gradient, gradient_refusal, why_no_gradient
from opkernel.testing.op_call import CheckFailure, OpCall, read_op_call
from opkernel.testing.op_runs import local_device_types
from opkernel.testing.tolerance import Tolerance
from opkernel.types import DataType

_DRAWS_FOR_ONE = 5
"""How many calls are drawn, at most, for each that a kernel is to take."""

_KERNEL_CALLS_FOR_GRADIENT = 5
"""How many calls kernels are tested on for each that the gradient is: that takes longer."""

_NO_CALL = "no call was found"

_CANNOT_BE_DRAWN = frozenset({DataType.DT_RESOURCE, DataType.DT_VARIANT})


@dataclass
class OpReport:
    """The report on an op.

    Attributes:
        op: The op.
        kernels: How many kernels it has for the devices here.
        draws: How many calls were drawn that the shape function accepts.
        ran: How many of them a kernel took; all others were refused with an OpError.
        seconds: How long it took.
        failure: The smallest failure that was found.
        skipped: Why nothing was drawn; empty where calls were.
        refusal: The error of the first call that was refused.
        gradients: At how many calls the gradient was compared with finite differences.
        gradient_skipped: Why the gradient was not compared; empty where it was, or where the kernels failed.
    """

    op: str
    kernels: int = 0
    draws: int = 0
    ran: int = 0
    seconds: float = 0.0
    failure: CheckFailure | None = None
    skipped: str = ""
    refusal: str = ""
    gradients: int = 0
    gradient_skipped: str = ""

    @property
    def why_untested(self) -> str:
        """Why no kernel was tested; empty where one was."""
        if self.skipped or self.ran or self.failure is not None:
            return self.skipped
        calls = f"{self.draws:,} call{'' if self.draws == 1 else 's'}"
        first = f", the first with {self.refusal}" if self.refusal else ""
        return f"its kernels refused all {calls} that were drawn{first}"


def check_op(
    op: str,
    *,
    inputs: Mapping[str, Any] | None = None,
    attrs: Mapping[str, Any] | None = None,
    max_examples: int = 100,
    devices: Sequence[str] | None = None,
    tolerance: Tolerance | None = None,
    registry: KernelRegistry | None = None,
    op_registry: OpRegistry | None = None,
) -> OpReport:
    """Test all kernels of an op on drawn calls, and its gradient function if one is registered.

    Gradients are compared for ops and kernels of the global registries.

    Args:
        op: The op's name.
        inputs: For input arguments whose values follow a rule that the shape function does not
            know: a hypothesis strategy of arrays, or an array. For a list argument also a list.
        attrs: For attrs likewise.
        max_examples: How many calls to draw.
        devices: The device types whose kernels are tested; all of this process if None.
        tolerance: By how much results of two kernels may differ; as `TOLERANCES` says if None.
        registry: Where the kernels are found; the global registry if None.
        op_registry: Where the op is found; the global registry if None.

    Raises:
        CheckFailure: An AssertionError, with the smallest call that was found.
        NotFoundError: There is no such op.
        UnimplementedError: hypothesis is not installed.
        FailedPreconditionError: the op has no kernel here, it has
            inputs that cannot be drawn, or its kernels refused all calls.
    """
    report = examine_op(
        op,
        inputs=inputs,
        attrs=attrs,
        max_examples=max_examples,
        devices=devices,
        tolerance=tolerance,
        registry=registry,
        op_registry=op_registry,
    )
    if report.failure is not None:
        raise report.failure
    if report.why_untested:
        raise FailedPreconditionError(f"{op} was not tested: {report.why_untested}")
    return report


def examine_op(
    op: str,
    *,
    inputs: Mapping[str, Any] | None = None,
    attrs: Mapping[str, Any] | None = None,
    max_examples: int = 100,
    devices: Sequence[str] | None = None,
    tolerance: Tolerance | None = None,
    registry: KernelRegistry | None = None,
    op_registry: OpRegistry | None = None,
    checker: Checker | None = None,
) -> OpReport:
    """The findings of `check_op`, as a report; the arguments are as for `check_op`.

    `checker` checks each call, if it is to be checked for more than the rules for kernels;
    gradients are then left out.

    Raises:
        NotFoundError: There is no such op.
        UnimplementedError: hypothesis is not installed.
    """
    check_installed("hypothesis", "Testing ops")
    with_gradient = checker is None
    checker = checker or _checker(registry, op_registry, devices, tolerance)
    registration = checker.op_registry.look_up(op)
    report = OpReport(op, len(checker.kernels(op)))
    report.skipped = _why_not(checker, op, inputs or {})
    if not report.skipped:
        from opkernel.testing.draw_calls import CallSource, op_calls  # hypothesis is optional

        kernel_defs = [one.kernel_def for one in checker.kernels(op) if _is_drawable(one)]
        source = CallSource(registration, kernel_defs, inputs or {}, attrs or {})
        start = time.perf_counter()
        _hunt(op_calls(source), checker.check, checker.refusal, report, max_examples)
        if report.skipped == _NO_CALL and source.refusals:
            report.skipped = f"the shape function refused all calls, with {source.refusals[-1]}"
        if with_gradient and report.failure is None and report.ran:
            _examine_gradient(source, checker, report, max_examples)
        report.seconds = time.perf_counter() - start
    return report


def _examine_gradient(source: Any, checker: Checker, report: OpReport, max_examples: int) -> None:
    """Compare the gradient of an op with finite differences, and report that."""
    from opkernel.testing.draw_gradient_calls import gradient_calls

    report.gradient_skipped = _why_no_gradient(checker, source.registration)
    if report.gradient_skipped:
        return
    found = OpReport(report.op)
    number = max(1, max_examples // _KERNEL_CALLS_FOR_GRADIENT)
    _hunt(gradient_calls(source), check_call_gradient, gradient_refusal, found, number)
    report.gradients, report.failure = found.ran, found.failure
    if not found.ran and found.failure is None:
        first = f", the first with {found.refusal}" if found.refusal else ""
        report.gradient_skipped = f"it could be compared at no drawn call{first}"


def _why_no_gradient(checker: Checker, registration: OpRegistrationData) -> str:
    own = checker.registry, checker.op_registry
    if own != (global_kernel_registry(), global_op_registry()):
        return "the op is in a registry of its own"
    return why_no_gradient(registration)


def check_saved_call(
    path: str | Path,
    *,
    registry: KernelRegistry | None = None,
    op_registry: OpRegistry | None = None,
) -> None:
    """Check the kernels and the gradient of an op on a call that `opkernel test --save` wrote.

    Raises:
        CheckFailure: An AssertionError: a kernel breaks a rule, or the gradient is wrong.
    """
    checker = _checker(registry, op_registry, None, None)
    call = read_op_call(path, checker.op_registry)
    checker.check(call)
    if not _why_no_gradient(checker, call.registration):
        check_call_gradient(call)


def save_failure(
    failure: CheckFailure, folder: Path, modules: Sequence[str] = ()
) -> tuple[Path, Path]:
    """Write a failing call to `folder`: as a GraphDef in text, and as a pytest file that runs it.

    Args:
        failure: The failure.
        folder: Where to write; made if it is not there.
        modules: The modules that register the op and its kernels, for the pytest file to import.

    Raises:
        InvalidArgumentError: an input is of a type that no GraphDef can hold, or no folder can have that path.
    """
    from google.protobuf import text_format  # slow to import

    name = _file_name(failure.call.node_def.op)
    graph = text_format.MessageToString(failure.call.graph_def())
    folder = Path(checked_path(folder))
    folder.mkdir(parents=True, exist_ok=True)
    call, case = folder / f"{name}.pbtxt", folder / f"test_{name}.py"
    call.write_text(graph)
    roots = dict.fromkeys(root for module in modules if (root := _root_of(module, folder)))
    case.write_text(_case_text(failure, call.name, name, modules, list(roots)))
    return call, case


def _root_of(module: str, folder: Path) -> str | None:
    """The path from `folder` to where a module is imported from; None if it is installed."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:
        return None
    path = Path(file).resolve()
    root = (path.parent if path.name == "__init__.py" else path).parents[module.count(".")]
    return None if "site-packages" in root.parts else os.path.relpath(root, folder.resolve())


def _case_text(
    failure: CheckFailure, call: str, name: str, modules: Sequence[str], roots: Sequence[str]
) -> str:
    imports = "".join(
        [
            *(f"sys.path.append(str(Path(__file__).parent / {root!r}))\n" for root in roots),
            *(f"import {module}  # noqa: E402, F401  # registers the op\n" for module in modules),
        ]
    )
    header = "import sys\n" if roots else ""
    lines = "\n".join(f"# {line}".rstrip() for line in str(failure).splitlines())
    return f'''"""A call of {failure.call.node_def.op} that a kernel failed on; `opkernel test` found it."""

{header}from pathlib import Path

{imports}from opkernel.testing import check_saved_call

{lines}


def test_{name}() -> None:
    check_saved_call(Path(__file__).with_name("{call}"))
'''


def _file_name(op: str) -> str:
    """`MatMul` -> `mat_mul`."""
    parts = [f"_{c.lower()}" if c.isupper() else c for c in op]
    name = "".join(c if c.isalnum() or c == "_" else "_" for c in "".join(parts))
    return name.strip("_")


def _checker(
    registry: KernelRegistry | None,
    op_registry: OpRegistry | None,
    devices: Sequence[str] | None,
    tolerance: Tolerance | None,
) -> Checker:
    return Checker(
        global_op_registry() if op_registry is None else op_registry,
        global_kernel_registry() if registry is None else registry,
        tuple(local_device_types() if devices is None else devices),
        tolerance,
    )


def _why_not(checker: Checker, op: str, inputs: Mapping[str, Any]) -> str:
    """Why calls of an op cannot be drawn; empty where they can."""
    kernels = checker.kernels(op)
    if not any(map(_is_drawable, kernels)):
        kind = "of values that can be drawn " if kernels else ""
        return f"it has no kernel {kind}for {', '.join(checker.devices)}"
    op_def = checker.op_registry.look_up_op_def(op)
    if op_def.is_distributed_communication:
        return "it waits for other devices, and a call by itself has none"
    for arg in op_def.input_arg:
        if DataType(arg.type) in _CANNOT_BE_DRAWN and arg.name not in inputs:
            kind = DataType(arg.type).string
            return f"values for '{arg.name}', a {kind}, cannot be drawn: give them as inputs"
    return ""


def _is_drawable(registration: KernelRegistration) -> bool:
    """Whether a kernel takes other tensors than resources and variants."""
    allowed = [c.allowed_values.list.type for c in registration.kernel_def.constraint]
    return not any(types and _CANNOT_BE_DRAWN.issuperset(types) for types in allowed)


class _Enough(BaseException):
    """Ends the drawing; hypothesis counts only an Exception as a failure."""


_Check = Callable[[OpCall], int]
"""Checks a call and counts its checks."""
_Refusal = Callable[[OpCall], str]
"""Says why there are none."""


def _hunt(
    calls: Any, check: _Check, refusal: _Refusal, report: OpReport, max_examples: int
) -> None:
    """Draw calls and check them, until enough were taken, or one fails; that is made small."""
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis.errors import Flaky, Unsatisfiable

    @settings(
        max_examples=max_examples * _DRAWS_FOR_ONE,
        database=None,
        deadline=None,
        derandomize=True,
        print_blob=False,
        report_multiple_bugs=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(calls)
    def check_drawn(call: OpCall) -> None:
        _check_one(check, refusal, report, call)
        if report.ran == max_examples and report.failure is None:
            raise _Enough

    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            check_drawn()
    except CheckFailure as failure:
        vars(failure).pop("__notes__", None)  # hypothesis shows the call; the message does, too
        report.failure = failure  # the smallest
    except (_Enough, Flaky):  # flaky: a failure that does not come again; it is in the report
        pass
    except (Unsatisfiable, UnimplementedError) as error:
        if not report.draws:
            report.skipped = str(error) if isinstance(error, OpError) else _NO_CALL


def _check_one(check: _Check, refusal: _Refusal, report: OpReport, call: OpCall) -> None:
    """Check a call and count it."""
    try:
        taken = check(call) > 0
    except CheckFailure as failure:
        if not isinstance(failure.__cause__, DeadlineExceededError):
            report.failure = failure
            raise
        if call.registration.op_def.is_stateful:
            report.skipped = f"it waits for others: {failure.what}"
        else:
            report.failure = failure
        raise _Enough from failure  # to make it smaller would take too long
    if report.failure is None:  # else it is being made small
        report.draws += 1
        report.ran += taken
        if not taken and not report.refusal:
            report.refusal = refusal(call)
