"""Kernels that are functions: whether they fit their op, what is filled in, what NumPy says of ufuncs."""

import functools
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tests.kernel.kernels import make_kernel

from opkernel.device.local_device import LocalDevice
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import (
    FunctionKernel,
    FunctionKernelFactory,
    KernelContract,
    OpKernelContext,
    Step,
    forward_input,
    from_attrs,
)
from opkernel.kernel.function_kernel import callable_name, keywords_of
from opkernel.opdef import OpRegistry, register_op, unchanged_shape, unknown_shape

ONE: dict[str, Any] = {"inputs": ["x: float"], "outputs": ["y: float"]}
X = np.array([1, 2], np.float32)


def made(kernel: Any, **options: Any) -> FunctionKernel:
    found = make_kernel(kernel, **{**ONE, **options})
    assert isinstance(found, FunctionKernel)
    return found


def run(kernel: Any, *inputs: Any, **options: Any) -> list[Any]:
    return OpKernelContext(made(kernel, **options), inputs, Step()).run()


class TestWhatFits:
    """A function has a positional parameter for each input, and keywords for attrs, `xp` and `construction`."""

    @pytest.mark.parametrize(
        "function",
        [
            lambda a, b: a,
            lambda a, b, *, k: a,
            lambda a, b, *, xp, construction: a,
            np.add,
            functools.partial(np.add),  # nothing is known of it
            max,
        ],
    )
    def test_right(self, function):
        FunctionKernelFactory(function).check(self.op_def())

    @pytest.mark.parametrize(
        ("function", "what"),
        [
            (lambda a: a, "it must take 2 positional parameters, one for each input"),
            (lambda a, b, c: a, "it must take 2 positional parameters, one for each input"),
            (lambda *inputs: inputs, "it must take 2 positional parameters"),
            (lambda a, b, *more: a, "it must take 2 positional parameters"),
            (lambda a, b, **attrs: a, "it must take 2 positional parameters"),
            (np.negative, "it must take 2 positional parameters"),
            (lambda a, b, *, z, y: a, "the op has no attr 'z', 'y'"),
        ],
    )
    def test_wrong(self, function, what):
        with pytest.raises(InvalidArgumentError, match="does not fit the op Pair") as raised:
            FunctionKernelFactory(function).check(self.op_def())
        assert what in raised.value.message

    def test_a_maker_takes_attrs_alone(self):
        FunctionKernelFactory(lambda *, k: max, is_maker=True).check(self.op_def())
        with pytest.raises(InvalidArgumentError, match="it must take 0 positional parameters, one"):
            FunctionKernelFactory(lambda a, b: a, is_maker=True).check(self.op_def())

    def test_one_parameter_is_one(self):
        with pytest.raises(InvalidArgumentError, match="must take 1 positional parameter, one for"):
            FunctionKernelFactory(max_of_two).check(self.op_def(["a: float"]))

    def test_the_error_tells_the_function_and_the_op(self):
        with pytest.raises(InvalidArgumentError) as raised:
            FunctionKernelFactory(max_of_two).check(self.op_def(["a: float"], []))
        assert raised.value.message == (
            "Pair: the kernel max_of_two(a, b, *, k) does not fit the op Pair(a; attrs none): "
            "the op has no attr 'k'"
        )

    def test_out_is_no_attr_of_a_kernel_that_takes_it(self):
        def kernel(a, b, *, k, out=None):
            return a

        factory = FunctionKernelFactory(kernel, takes_out=True)
        assert factory.keywords_for(self.op_def()) == ("k",)
        with pytest.raises(InvalidArgumentError, match="no attr 'out'"):
            FunctionKernelFactory(kernel).keywords_for(self.op_def())

    def test_each_op_is_checked(self):
        factory = FunctionKernelFactory(max_of_two)
        assert factory.keywords_for(self.op_def()) == ("k",)
        with pytest.raises(InvalidArgumentError):
            factory.keywords_for(self.op_def(["a: float"]))

    def op_def(self, inputs=("a: float", "b: float"), attrs=("k: int = 1",)):
        return register_op(
            "Pair",
            inputs=[*inputs],
            outputs=["y: float"],
            attrs=[*attrs],
            shape_fn=unknown_shape,
            registry=OpRegistry(),
        ).op_def


def max_of_two(a, b, *, k):
    return max(a, b)


class TestNames:
    @pytest.mark.parametrize(
        ("function", "name"),
        [
            (max_of_two, "max_of_two"),
            (np.add, "add"),
            (FunctionKernel, "FunctionKernel"),
            (max, "max"),
        ],
    )
    def test_of_functions(self, function, name):
        assert callable_name(function) == name

    @pytest.mark.parametrize(
        ("function", "keywords"),
        [(max_of_two, ("k",)), (np.add, ()), (max, ()), (lambda a, *, b, c=1: a, ("b", "c"))],
    )
    def test_of_keywords(self, function, keywords):
        assert keywords_of(function) == keywords

    def test_a_method_has_the_parameters_after_self(self):
        class Holder:
            def method(self, x, *, k):
                return x * k

        FunctionKernelFactory(Holder().method).check(TestWhatFits().op_def(["x: float"]))
        assert keywords_of(Holder().method) == ("k",)


class TestFromAttrs:
    def test_attrs_make_a_keyword(self):
        @from_attrs(scale=lambda up, down: up / down)
        def kernel(x, *, scale):
            return x * np.float32(scale)

        assert keywords_of(kernel) == ("down", "up")
        attrs = {"attrs": ["up: float = 6.0", "down: float = 4.0"]}
        assert run(kernel, X, **attrs)[0].tolist() == [1.5, 3.0]

    def test_what_a_partial_fills_in_and_what_has_a_default_is_no_attr(self):
        def scale(up, down, unit, more=1):
            return (up, down, unit, more)

        @from_attrs(a=functools.partial(scale, 1, unit=3))
        def kernel(x, *, a):
            return x

        assert keywords_of(kernel) == ("down",)

        class Scale:
            def __init__(self, up, down=2):
                self.value = up / down

        @from_attrs(scale=Scale)
        def other(x, *, scale, own):
            return x * np.float32(scale.value + own)

        assert keywords_of(other) == ("own", "up")
        attrs = {"attrs": ["up: float = 6.0", "own: float = 1.0"]}
        assert run(other, X, **attrs)[0].tolist() == [4.0, 8.0]

    def test_an_attr_may_be_asked_for_itself_too(self):
        @from_attrs(twice=lambda k: 2 * k)
        def kernel(x, *, twice, k):
            return x * np.float32(twice + k)

        assert keywords_of(kernel) == ("k",)
        assert run(kernel, X, attrs=["k: int = 5"])[0].tolist() == [15.0, 30.0]


class TestUfuncs:
    def test_stand_for_the_functions_of_their_names_in_another_namespace(self):
        arrays = ModuleType("arrays")
        arrays.negative = lambda x: x * 10  # type: ignore[attr-defined]
        device = LocalDevice("CPU", arrays)
        assert made(np.negative, device=device).unchecked is arrays.negative
        assert made(np.negative).unchecked is np.negative

    def test_numpy_tells_that_outputs_are_as_declared(self):
        assert made(np.negative).contract.outputs_as_declared
        assert made(np.negative).function is np.negative
        assert not made(np.isfinite).contract.outputs_as_declared
        assert made(np.isfinite, outputs=["y: bool"]).contract.outputs_as_declared


class TestFacts:
    def test_attrs_are_those_that_are_filled_in(self):
        def kernel(x, *, k, xp, names):
            return x * k

        attrs = {"attrs": ["k: int = 3", "names: list(string) = ['a', 'b']", "other: int = 4"]}
        found = made(kernel, **attrs)
        assert found.attrs == {"k": 3, "names": ["a", "b"]}
        assert made(lambda x: x, **attrs).attrs == {}

    def test_a_kernel_that_passes_its_input_on_may_share_its_memory(self):
        claims = KernelContract(elementwise=True, outputs_as_declared=True)
        found = made(forward_input, contract=claims, shape_fn=unchanged_shape)
        assert found.contract.may_alias is True
        assert not found.contract.elementwise

    def test_requested_inputs_and_ranges(self):
        found = made(lambda x: x)
        assert found.requested_input(0) == "in0"
        assert (found.input_range("x"), found.output_range("y")) == ((0, 1), (0, 1))
        assert found.requested_device == ""

    def test_a_node_whose_function_gives_nothing_is_told_so(self):
        with pytest.raises(Exception, match="output 0 must be float, the kernel set None"):
            run(lambda x: None, X, contract=KernelContract(outputs_as_declared=True))
