"""SdcaOptimizer, SdcaOptimizerV2, SdcaShrinkL1, SdcaFprint: training of linear models by their dual variables.

The order of the examples is random, as in TensorFlow. Each is seen once; where the order is adaptive, examples of great
gradients are seen more often.

Source: TensorFlow core/ops/sdca_ops.cc, core/kernels/sdca_ops.cc, sdca_internal.cc; Csiba, Qu and Richtarik,
Stochastic dual coordinate ascent with adaptive probabilities (2015).
"""

import random
from typing import Any

import numpy as np

from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext, check_allocation
from opkernel.opdef import InferenceContext, register_op, unknown_shape
from opkernel.opdef.common_shapes.rules import set_outputs, shape_rule
from opkernel.opdef.core.fingerprint import fingerprint128
from opkernel.ops.input_checks import int32_attr, require, require_rank, require_vector
from opkernel.ops.registration import register_kernel
from opkernel.ops.sdca.examples import Examples, Regularization
from opkernel.ops.sdca.losses import LOSSES
from opkernel.types import Array, DataType, TensorShape


def _optimizer_shape(c: InferenceContext) -> None:
    """[examples, 4], and a change of each weight."""
    weights = [*c.input("sparse_weights"), *c.input("dense_weights")]
    set_outputs(c, [c.matrix(None, 4), *weights])


_SPARSE, _VALUED, _DENSE = (
    "num_sparse_features",
    "num_sparse_features_with_values",
    "num_dense_features",
)
_INPUTS = (
    f"sparse_example_indices: {_SPARSE} * int64, sparse_feature_indices: {_SPARSE} * int64, "
    f"sparse_feature_values: {_VALUED} * float, dense_features: {_DENSE} * float, example_weights: float, "
    f"example_labels: float, sparse_indices: {_SPARSE} * int64, sparse_weights: {_SPARSE} * float, "
    f"dense_weights: {_DENSE} * float, example_state_data: float"
)
_OUTPUTS = (
    f"out_example_state_data: float, out_delta_sparse_weights: {_SPARSE} * float, "
    f"out_delta_dense_weights: {_DENSE} * float"
)
_LOSS_TYPES = "loss_type: {'logistic_loss', 'squared_loss', 'hinge_loss', 'smooth_hinge_loss', 'poisson_loss'}"

SDCA_OPTIMIZER, SDCA_OPTIMIZER_V2 = (
    register_op(
        f"{name}({_INPUTS}) -> {_OUTPUTS}",
        attrs=[
            _LOSS_TYPES,
            f"{adaptive}: bool = false",
            *(f"{one}: int >= 0" for one in (_SPARSE, _VALUED, _DENSE)),
            "l1: float",
            "l2: float",
            "num_loss_partitions: int >= 1",
            "num_inner_iterations: int >= 1",
        ],
        shape_fn=_optimizer_shape,
        doc="""
        Trains a linear model on a batch of examples, each once: gives the changes of its weights.

        example_state_data: [examples, 4]: the dual variable, the losses of both problems, and the weight of each.
        """,
    )
    for name, adaptive in (("SdcaOptimizer", "adaptative"), ("SdcaOptimizerV2", "adaptive"))
)
SDCA_SHRINK_L1 = register_op(
    "SdcaShrinkL1(weights: Ref(num_features * float))",
    attrs=["num_features: int >= 0", "l1: float", "l2: float"],
    shape_fn=unknown_shape,
    doc="Brings weights nearer to 0 by l1 / l2, in place; those that are nearer become 0.",
)
SDCA_FPRINT = register_op(
    "SdcaFprint(input: string) -> output: int64",
    shape_fn=shape_rule("[n] -> [n, 2]"),
    doc="Fingerprints of 128 bits, the lower half first; that is never 0 or 1.",
)


@register_kernel(SDCA_OPTIMIZER)
@register_kernel(SDCA_OPTIMIZER_V2)
class SdcaOptimizer(OpKernel):
    """Trains on each example of a batch."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        get = construction.get_attr
        self._loss = LOSSES[get("loss_type")]
        is_first = construction.op_def.name == "SdcaOptimizer"
        self._adaptive = get("adaptative" if is_first else "adaptive")
        require(get(_SPARSE) + get(_DENSE) > 0, "Requires at least one feature to train.")
        self._partitions = int32_attr("num_loss_partitions", get("num_loss_partitions"))
        self._regularization = Regularization(get("l1"), get("l2"))

    def compute(self, ctx: OpKernelContext) -> None:
        """Set the new states and the changes of the weights."""
        args = (arg.name for arg in self.properties.op_def.input_arg)
        inputs = dict(zip(args, ctx.inputs_by_arg(), strict=True))
        examples = Examples(inputs)
        given = inputs["example_state_data"]
        message = f"example_state_data must be rank 2 but is rank {given.ndim}"
        require_rank(given, 2, message)
        wanted = (len(examples.weights), 4)
        if given.shape != wanted:
            raise InvalidArgumentError(
                f"Expected shape {TensorShape(wanted)} for example_state_data, got {TensorShape(given.shape)}"
            )
        state = given.copy()
        with np.errstate(all="ignore"):
            for example in in_time(self._order(examples, state), SLOW):
                self._train(examples, example, state)
        ctx.set_output("out_example_state_data", state)
        for name, groups, shapes in (
            ("out_delta_sparse_weights", examples.sparse, inputs["sparse_weights"]),
            ("out_delta_dense_weights", examples.dense, inputs["dense_weights"]),
        ):
            changes = [group.deltas for group in groups]
            ctx.set_output_list(
                name, [a.reshape(b.shape) for a, b in zip(changes, shapes, strict=True)]
            )

    def _order(self, examples: Examples, state: Array) -> list[int]:
        """The examples in the order in which they are seen."""
        order = [*range(len(examples.weights))]
        if not self._adaptive:
            random.shuffle(order)
            return order
        chances = [self._chance(examples, example, state) for example in in_time(order, SLOW)]
        return _adaptive_order(chances)

    def _chance(self, examples: Examples, example: int, state: Array) -> float:
        """How likely an example is drawn, in proportion."""
        label = np.float64(self._loss.converted(examples.labels[example]))
        now, _ = examples.predictions(example, self._partitions, self._regularization)
        rest = state[example, 0] + self._loss.slope(now, label)
        norm = examples.squares[example] + self._regularization.l2 * self._loss.smoothness
        chance = float(examples.weights[example] * np.sqrt(norm) * np.abs(rest))
        return chance if np.isfinite(chance) and chance > 0 else 0.0

    def _train(self, examples: Examples, example: int, state: Array) -> None:
        loss, l2 = self._loss, self._regularization.l2
        weight = np.float64(examples.weights[example])
        label = np.float64(loss.converted(examples.labels[example]))
        dual = np.float64(state[example, 0])
        now, before = examples.predictions(example, self._partitions, self._regularization)
        scale = self._partitions * weight * (examples.squares[example] / l2)
        found = loss.dual(label, dual, now, scale)
        for group in examples.groups:
            group.add(example, (found - dual) * weight / l2)
        losses = loss.primal_loss(before, label), loss.dual_loss(dual, label)
        state[example] = found, losses[0] * weight, losses[1] * weight, weight


def _adaptive_order(chances: list[float]) -> list[int]:
    """As many examples as there are, drawn by their chances; a drawn one stays with a tenth of its chance.

    After as many refusals the examples that were not drawn follow, those of great chances first.
    """
    count, order = len(chances), list[int]()
    seen, refused = [0] * count, 0
    while len(order) < count and refused < count and any(chances):
        (picked,) = random.choices(range(count), chances)
        if random.random() > 0.1 ** seen[picked]:
            refused += 1
            continue
        seen[picked] += 1
        order.append(picked)
    unseen = sorted((i for i in range(count) if not seen[i]), key=lambda i: -chances[i])
    return [*order, *unseen][:count]


@register_kernel(SDCA_SHRINK_L1)
class SdcaShrinkL1(OpKernel):
    """Shrinks weights."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        get = construction.get_attr
        self._regularization = Regularization(get("l1"), get("l2"))

    def compute(self, ctx: OpKernelContext) -> None:
        """Change all weights in place."""
        for index in range(ctx.num_inputs):
            with ctx.input_ref_mutex(index), np.errstate(all="ignore"):
                shrunk = self._regularization.shrunk(ctx.mutable_input(index, lock_held=True))
                ctx.replace_ref_input(index, shrunk, lock_held=True)


@register_kernel(SDCA_FPRINT)
def sdca_fprint(tensor: Any) -> Any:
    require_vector(tensor, "Input must be a vector, got shape {}")
    check_allocation((len(tensor), 8), DataType.DT_INT64)
    halves = [fingerprint128(text, in_time) for text in in_time(tensor.tolist())]
    found = np.array(halves, np.uint64).reshape(-1, 2)
    found[:, 0] -= np.where(found[:, 0] < 2, np.uint64(2), np.uint64(0))
    return found.view(np.int64)
