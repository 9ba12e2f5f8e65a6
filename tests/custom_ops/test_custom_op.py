"""Ops from type hints, as their users meet them: called, in graphs and functions, with all that a handle adds."""

import copy
import pickle
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pytest

import opkernel
from opkernel import int32
from opkernel.custom_ops import Tensor
from opkernel.custom_ops.custom_op import has_body
from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.gradients import nodes
from opkernel.kernel import get_registered_kernels_for_op
from opkernel.opdef import unchanged_shape
from opkernel.testing import check_op

T = TypeVar("T")
dtype = TypeVar("dtype")


class Top(NamedTuple):
    values: Tensor["T"]
    indices: Tensor[int32]


@opkernel.op(types={"T": ["float", "double"]})
def hinted_clip(x: Tensor["T"], low: float, high: float = 1.0) -> Tensor["T"]:
    return np.clip(x, x.dtype.type(low), x.dtype.type(high))


hinted_clip.shape_fn(unchanged_shape)


@hinted_clip.gradient
def hinted_clip_gradient(op, grad):
    (x,) = op.inputs
    above, below = (
        nodes.GreaterEqual(x, op.get_attr("low")),
        nodes.LessEqual(x, op.get_attr("high")),
    )
    return nodes.Select(nodes.LogicalAnd(above, below), grad, nodes.ZerosLike(grad))


@opkernel.op
def hinted_top(x: Tensor["T"], k: int, *, mode: str = "largest") -> Top:
    order = np.argsort(x if mode == "smallest" else -x)[:k].astype(np.int32)
    return Top(x[order], order)


@opkernel.op
def hinted_scale(xs: list[Tensor["T"]], by: Tensor["T"]) -> list[Tensor["T"]]:
    return [x * by for x in xs]


@opkernel.op
def hinted_split(x: Tensor["T"], dtype: opkernel.DataType) -> tuple[Tensor["T"], Tensor["dtype"]]:
    return x, x.astype(dtype.numpy_dtype)


@opkernel.op
def hinted_stub(x: Tensor["T"]) -> Tensor["T"]:
    """Without a kernel."""


X = np.array([-1.0, 0.5, 3.0])
MINE = np.array([3.0, 1.0, 2.0], np.float32)


@pytest.mark.parametrize(
    ("body", "is_stub"),
    [
        ("...", True),
        ("pass", True),
        ("'A docstring.'", True),
        ("'A docstring.'; ...", True),
        ("raise NotImplementedError", True),
        ("raise NotImplementedError('on the CPU')", True),
        ("raise ValueError", False),
        ("raise NotImplementedError(str(x))", False),
        ("return x", False),
        ("return 5", False),
        ("x + 1", False),
        ("print(x)", False),
    ],
)
def test_a_body_that_does_nothing_is_no_kernel(body, is_stub):
    names: dict[str, Any] = {}
    exec(f"def function(x): {body}", names)
    assert has_body(names["function"]) is not is_stub


class TestCalls:
    def test_arguments_stand_in_order_or_by_name_and_attrs_have_defaults(self):
        assert hinted_clip(X, 0.0).tolist() == [0, 0.5, 1]
        assert hinted_clip(high=2, low=0, x=X).tolist() == [0, 0.5, 2]
        assert hinted_clip([-1.0, 7.0], 0.0).dtype == np.float32

    def test_outputs_come_as_the_hint_says(self):
        found = hinted_top(MINE, 2)
        assert isinstance(found, Top)
        assert (found.values.tolist(), found.indices.tolist()) == ([3, 2], [0, 2])
        assert hinted_top(MINE, 1, mode="smallest").indices.tolist() == [1]
        pair = hinted_split(X, opkernel.int32)
        assert type(pair) is tuple
        assert [array.dtype.name for array in pair] == ["float64", "int32"]
        assert [a.tolist() for a in hinted_scale([[1.0], [2.0, 3.0]], 2.0)] == [[2], [4, 6]]

    def test_they_are_ops_like_others(self):
        assert opkernel.raw_ops.HintedClip(x=X, low=0.0).tolist() == [0, 0.5, 1]
        assert repr(hinted_clip) == "<op HintedClip>"
        assert hinted_clip.handle.owner == __name__
        assert hinted_clip.handle.site.file == __file__

    def test_copies_and_pickles_are_the_op_itself(self):
        assert copy.deepcopy(hinted_clip) is hinted_clip
        assert pickle.loads(pickle.dumps(hinted_clip)) is hinted_clip

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ((X,), TypeError, r"HintedClip\(\): missing a required argument: 'low'"),
            ((X, 0.0, 1.0, 2.0), TypeError, r"HintedClip\(\): too many positional arguments"),
            ((X, "a"), InvalidArgumentError, "'a' is not a value for an attr of type float"),
            ((np.array([1]), 0.0), InvalidArgumentError, "int64.*(float|double)"),
        ],
    )
    def test_wrong_calls(self, arguments, error, message):
        with pytest.raises(error, match=message):
            hinted_clip(*arguments)

    def test_a_stub_has_no_kernel(self):
        with pytest.raises(NotFoundError, match="HintedStub"):
            hinted_stub(X)


class TestGraphs:
    def test_nodes_are_added_and_run(self):
        with opkernel.Graph().as_default() as graph:
            x = opkernel.placeholder(opkernel.float32, [None, 3], name="x")
            clipped = hinted_clip(x, 0.0)
            top = hinted_top(clipped[0], 2)
            stub = hinted_stub(x)
        assert isinstance(top, Top)
        assert (clipped.shape.as_list(), stub.shape.rank) == ([None, 3], None)
        assert opkernel.Session(graph).run(top.values, {x: X[None]}).tolist() == [1, 0.5]

    def test_functions_are_traced(self):
        @opkernel.function
        def doubled(x):
            return hinted_clip(x, -1.0) * 2

        assert doubled(np.array([5, -5], np.float32)).tolist() == [2, -2]

    def test_gradients_pass(self):
        with opkernel.Graph().as_default() as graph:
            x = opkernel.constant(X)
            (slope,) = opkernel.gradients(hinted_clip(x, 0.0), x)
        assert opkernel.Session(graph).run(slope).tolist() == [0, 1, 0]

    def test_drawn_calls_find_nothing(self):
        assert check_op("HintedClip", max_examples=20).failure is None


class TestHandle:
    def test_a_gradient_that_is_no_derivative(self):
        @opkernel.op
        def hinted_round(x: Tensor["float"]) -> Tensor["float"]:
            return np.rint(x)

        @hinted_round.gradient(not_derivative="it passes")
        def passed(op, grad):
            return grad

        assert check_op("HintedRound", max_examples=5).gradient_skipped == "it passes"

    def test_shape_functions_count_from_then_on(self):
        @opkernel.op
        def hinted_row(x: Tensor["float"]) -> Tensor["float"]: ...

        def rank() -> Any:
            with opkernel.Graph().as_default():
                return hinted_row([1.0]).shape.rank

        site = hinted_row.handle.site
        assert rank() is None

        @hinted_row.shape_fn
        def row_shape(c):
            c.set_output(0, c.matrix(1, None))

        assert rank() == 2
        assert hinted_row.handle.site == site

    def test_kernels_for_devices(self):
        @hinted_stub.kernel(device="TPU", types={"T": opkernel.float32}, priority=2)
        def on_tpu(x):
            return x

        (kernel,) = get_registered_kernels_for_op("HintedStub").kernel
        assert (kernel.device_type, kernel.priority) == ("TPU", 2)
        assert on_tpu(3) == 3

    @pytest.mark.parametrize("form", ["own", "keywords", "maker", "class", "async"])
    def test_every_form_of_a_kernel(self, form):
        @opkernel.op
        def hinted_power(x: Tensor["float"], n: int = 2) -> Tensor["float"]:
            raise NotImplementedError

        def own(x, n):
            return x**n

        def keywords(x, *, n, xp):
            return xp.power(x, n)

        async def asynchronous(x, n):
            return x**n

        class Power(opkernel.OpKernel):
            def __init__(self, construction):
                super().__init__(construction)
                self.n = construction.get_attr("n")

            def compute(self, ctx):
                ctx.set_output(0, ctx.input(0) ** self.n)

        kernels: dict[str, Any] = {
            "own": own,
            "keywords": keywords,
            "class": Power,
            "async": asynchronous,
        }
        if form == "maker":
            opkernel.register_kernel(hinted_power.handle, device="CPU", factory=True)(
                lambda *, n: lambda x: x**n
            )
        else:
            hinted_power.kernel(device="CPU")(kernels[form])
        with opkernel.Graph().as_default() as graph:
            y = hinted_power([3.0], 3)
        assert opkernel.Session(graph).run(y).tolist() == [27]

    def test_a_kernel_with_a_parameter_of_its_own(self):
        with pytest.raises(InvalidArgumentError, match="'lowest', which is no attr of the op"):

            @hinted_clip.kernel(device="TPU")
            def kernel(x, lowest):
                return x

    def test_a_cell_of_a_notebook_may_run_again(self):
        for factor in (2, 3):

            @opkernel.op
            def hinted_cell(x: Tensor["float"], factor: int = factor) -> Tensor["float"]:
                return x * np.float32(factor)

            assert hinted_cell([1.0]).tolist() == [factor]


def test_ops_with_state_and_without_outputs():
    seen: list[float] = []

    @opkernel.op(is_stateful=True, name="HintedNote")
    def note(x: Tensor["float"]) -> None:
        seen.append(float(x))
        return ()  # type: ignore[return-value]  # what a kernel without outputs gives

    note(3.0)
    assert seen == [3]
    assert note.op_def.is_stateful
