"""Test a kernel provider against the reference kernels.

    check_provider("blas")                                    # in a pytest test

Each op that the provider has kernels for is computed by these and by the reference kernels, on calls that
are drawn from the op's declaration and, for convolutions and matrix products, on calls of the sizes that
faster forms are for (`product_calls`). Both must take or refuse a call alike and give the same results; the
provider's kernels keep all rules that `check_op` knows; and inputs that stay from step to step, for which a
provider may prepare something, make no difference.

Needs hypothesis: `pip install opkernel[test]`.
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from opkernel.errors import Code, FailedPreconditionError, OpError
from opkernel.kernel import (
    KernelProvider,
    KernelRegistration,
    NodeProperties,
    OpKernel,
    choose_providers,
    find_kernel_registration,
    global_kernel_registry,
)
from opkernel.libraries import is_installed
from opkernel.opdef import global_op_registry, in_out_types_for_node
from opkernel.providers.loops import loops_run
from opkernel.state.lasting_values import note_lasting
from opkernel.testing.check_kernels import Checker, node_for, takes
from opkernel.testing.op_call import CheckFailure, OpCall
from opkernel.testing.op_check import OpReport, examine_op
from opkernel.testing.op_runs import run_kernel
from opkernel.testing.product_calls import has_product_calls, product_calls
from opkernel.testing.tolerance import Tolerance
from opkernel.types import PartialTensorShape


def ops_of_provider(provider: KernelProvider) -> list[str]:
    """The ops that a provider has kernels for."""
    names = global_op_registry().names()
    return [name for name in names if provider.kernels.registrations_for(name)]


def check_provider(
    provider: str | KernelProvider,
    *,
    ops: Sequence[str] | None = None,
    inputs: Mapping[str, Any] | None = None,
    attrs: Mapping[str, Any] | None = None,
    max_examples: int = 50,
    tolerance: Tolerance | None = None,
) -> list[OpReport]:
    """Test all kernels of a provider against the reference kernels.

    Where Numba is installed, their loops run compiled.

    Args:
        provider: A provider that is registered, or its name.
        ops: The ops that are tested; all that it has kernels for if None.
        inputs: As for `check_op`: values, or strategies, for inputs whose values follow a rule of their own.
        attrs: The same for attrs.
        max_examples: How many calls of each op are tested, not counting calls that the kernels refuse.
        tolerance: By how much results may differ; as `TOLERANCES` says if None.

    Returns:
        A report for each op.

    Raises:
        CheckFailure: An AssertionError, with the smallest call that was found.
        NotFoundError: There is no such provider.
        FailedPreconditionError: It has no kernels for these ops.
        UnimplementedError: hypothesis is not installed.
    """
    found = _provider(provider)
    names = ops_of_provider(found) if ops is None else ops
    if not names:
        raise FailedPreconditionError(f"Provider {found.name!r} has no kernels")
    with loops_run("compiled") if is_installed("numba") else nullcontext():
        return [_check(found, op, max_examples, tolerance, inputs, attrs) for op in names]


def check_provider_on_call(
    provider: str | KernelProvider, call: OpCall, *, tolerance: Tolerance | None = None
) -> int:
    """Test a provider's kernels of an op on one call.

    Returns:
        How many kernels took it.

    Raises:
        CheckFailure: An AssertionError: they differ from the reference, or a rule is broken.
    """
    found = _provider(provider)
    with loops_run("compiled") if is_installed("numba") else nullcontext():
        return _parity(found, call.node_def.op, tolerance).check(call)


def _provider(provider: str | KernelProvider) -> KernelProvider:
    return provider if isinstance(provider, KernelProvider) else choose_providers([provider])[0]


def _check(
    provider: KernelProvider,
    op: str,
    max_examples: int,
    tolerance: Tolerance | None,
    inputs: Mapping[str, Any] | None,
    attrs: Mapping[str, Any] | None,
) -> OpReport:
    checker = _parity(provider, op, tolerance)
    drawn = max_examples // 4 if has_product_calls(op) else max_examples
    report = examine_op(op, inputs=inputs, attrs=attrs, max_examples=drawn, checker=checker)
    if report.failure is not None:
        raise report.failure
    for call in product_calls(op, max_examples):
        report.draws += 1
        report.ran += bool(checker.check(call))
    if not report.ran:
        raise FailedPreconditionError(
            f"{op} was not tested: {report.skipped or f'all {report.draws} calls were refused'}"
        )
    return report


def _parity(provider: KernelProvider, op: str, tolerance: Tolerance | None) -> "_Parity":
    if not provider.kernels.registrations_for(op):
        raise FailedPreconditionError(f"Provider {provider.name!r} has no kernel of {op}")
    return _Parity(global_op_registry(), provider.kernels, ("CPU",), tolerance, provider=provider)


@dataclass(frozen=True, kw_only=True)
class _Parity(Checker):
    """Checks the kernels of a provider against the reference kernels."""

    provider: KernelProvider

    def check(self, call: OpCall) -> int:
        """Check a call; the result is the number of kernels that took it."""
        try:
            call.infer_shapes()
        except OpError:
            return 0
        return sum(
            self._check_kernel(call, one)
            for one in self.kernels(call.node_def.op)
            if takes(one, call) and self._supports(call)
        )

    def _supports(self, call: OpCall) -> bool:
        """Whether a node may get a kernel of the provider, its shapes being known or not."""
        op_def = call.registration.op_def
        types = in_out_types_for_node(call.node_def, op_def)
        node = NodeProperties.of(call.node_def, op_def, *types)
        known = [PartialTensorShape(np.shape(value)) for value in call.inputs]
        unknown = [PartialTensorShape(None)] * len(known)
        return any(self.provider.supports(node, shapes) for shapes in (unknown, known))

    def _check_kernel(self, call: OpCall, registration: KernelRegistration) -> bool:
        reference = self._reference(call, registration)
        expected = self.outcome(call, reference)
        found = self.outcome(call, registration)
        if isinstance(expected, BaseException) or isinstance(found, BaseException):
            told = [_told(outcome) for outcome in (found, expected)]
            if told[0] != told[1] and Code.RESOURCE_EXHAUSTED.name not in " ".join(told):
                name = self.provider.name
                what = f"the kernel of {name} {told[0]}, where the reference {told[1]}"
                raise CheckFailure(call, what)
            return False
        self.compare(call, ("of the reference", expected), (f"of {self.provider.name}", found))
        self._check_lasting(call, registration, expected)
        return True

    def _reference(self, call: OpCall, registration: KernelRegistration) -> KernelRegistration:
        device_type, node = registration.kernel_def.device_type, node_for(registration, call)
        return find_kernel_registration(device_type, node, registry=global_kernel_registry())

    def _check_lasting(
        self, call: OpCall, registration: KernelRegistration, expected: Sequence[Any]
    ) -> None:
        """Check that constants give the same outputs as other arrays, at first and later."""
        kernel = self.kernel(call, registration)
        inputs = [np.array(value, order="C") for value in call.inputs]
        for value in inputs:
            note_lasting(value)
        for _ in range(2):
            found = f"of {self.provider.name}, given constants,", _outputs(kernel, inputs)
            self.compare(call, ("of the reference", expected), found)


def _outputs(kernel: OpKernel, inputs: Sequence[Any]) -> list[Any]:
    arguments = [
        inputs[arg.start : arg.stop] if arg.is_list else inputs[arg.start]
        for arg in kernel.properties.input_args
    ]
    return run_kernel(kernel, arguments).outputs


def _told(outcome: Any) -> str:
    """The outcome of a call: the code with which it was refused."""
    if not isinstance(outcome, BaseException):
        return "takes the call"
    return f"refuses it with {getattr(getattr(outcome, 'code', None), 'name', type(outcome))}"
