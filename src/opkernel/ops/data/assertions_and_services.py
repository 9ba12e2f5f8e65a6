"""Datasets of the elements of another one that check a pipeline or choose a branch of it, and resources that serve TensorFlow's threads.

Pools of threads and collectors of statistics can be made and passed; they change nothing, and collect nothing.

Source: TensorFlow core/kernels/data/experimental/assert_next_dataset_op.cc, assert_prev_dataset_op.cc,
choose_fastest_branch_dataset_op.cc, threadpool_dataset_op.cc, stats_aggregator_ops.cc,
stats_dataset_ops.cc.
"""

from __future__ import annotations

import re

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import (
    FunctionRunOptions,
    OpKernelConstruction,
    OpKernelContext,
    ResourceBase,
    make_resource_handle,
    tensor_of_handle,
)
from opkernel.messages import short_repr
from opkernel.ops.data.dataset import DatasetBase, dataset_of
from opkernel.ops.data.dataset_op import DatasetNode, dataset_op, declare
from opkernel.ops.data.iterator_resource import check_types
from opkernel.ops.data.passed_on import SameDataset
from opkernel.ops.input_checks import require
from opkernel.ops.registration import register_kernel
from opkernel.ops.resource_op_kernel import (
    InexpensiveKernel,
    ResourceOpKernel,
    resource_of_handle,
)
from opkernel.proto import NameAttrList
from opkernel.types import object_scalar

__all__ = ["AssertPrevDataset"]

_MAX_THREADS = 1 << 16


@dataset_op(
    "AssertNextDataset",
    "ExperimentalAssertNextDataset",
    doc="The elements of `input_dataset`. TensorFlow checks the stages that its passes have put behind it.",
)
class AssertNextDataset(SameDataset):
    """The elements of another dataset."""

    def __init__(self, node: DatasetNode) -> None:
        super().__init__(node)
        node.vector("transformations")


@dataset_op(
    "AssertPrevDataset",
    doc="The elements of `input_dataset`, which the ops `transformations` must have made, last ones first.",
)
class AssertPrevDataset(SameDataset):
    """The elements of a dataset whose stages are checked."""

    def __init__(self, node: DatasetNode) -> None:
        super().__init__(node)
        found: DatasetBase | None = self.input
        for text in node.vector("transformations"):
            wanted = _transformation(text)
            op = "" if found is None or found.made_by is None else found.made_by.node.op
            if not re.fullmatch(f"{re.escape(wanted.name)}(V[0-9]+)?", op):
                raise InvalidArgumentError(
                    f"Asserted transformation {wanted.name!r} encountered {op!r} instead"
                )
            assert found is not None
            for name, value in wanted.attr.items():
                if found.made_by.node.attr[name] != value:
                    raise InvalidArgumentError(
                        f"Asserted {wanted.name!r} with the attr {name!r} of {value}, and found "
                        f"{found.made_by.node.attr[name]}"
                    )
            found = found.inputs[0] if found.inputs else None


def _transformation(text: bytes) -> NameAttrList:
    """The op and the attrs that a text names.

    Raises:
        InvalidArgumentError: it is no NameAttrList.
    """
    from google.protobuf import text_format  # takes long to import, and few datasets need it

    try:
        return text_format.Parse(text.decode("utf-8", "replace"), NameAttrList())
    except (text_format.ParseError, RecursionError) as error:
        raise InvalidArgumentError(
            f"Could not parse the transformation {short_repr(text)}"
        ) from error


@dataset_op(
    "ChooseFastestBranchDataset",
    doc="The elements of the dataset that the first of `branches` makes of `input_dataset`.",
)
class ChooseFastestBranchDataset(DatasetBase):
    """The elements of what one of several equal functions makes."""

    iterator_type = SameDataset.iterator_type

    def __init__(self, node: DatasetNode) -> None:
        branches, lengths = node.functions("branches"), node.attr("other_arguments_lengths")
        captured = node.tensors("other_arguments")
        if len(branches) != len(lengths) or min(lengths, default=0) < 0 or not branches:
            raise InvalidArgumentError("Each branch has a number in `other_arguments_lengths`")
        if sum(lengths) != len(captured):
            raise InvalidArgumentError("`other_arguments_lengths` must be as many as the arguments")
        for name in ("ratio_numerator", "ratio_denominator"):
            if node.scalar(name) <= 0:
                raise InvalidArgumentError(f"`{name}` must be greater than zero.")
        self._ratio = node.scalar("ratio_numerator"), node.scalar("ratio_denominator")
        library, handle = branches[0].found(node.context)
        arguments = [object_scalar(node.dataset()), *captured[: lengths[0]]]
        options = FunctionRunOptions(step=node.context.step)
        (made,) = library.run(options, handle, arguments)
        source = dataset_of(made)
        check_types(node.dtypes, source.dtypes)
        super().__init__(node.dtypes, node.shapes, [source])

    def cardinality(self) -> int:
        return self.input.cardinality()


# Threads and statistics


class ThreadPool(ResourceBase):
    """A pool of threads, of which there are none: kernels have threads of their own."""


class StatsAggregator(ResourceBase):
    """A collector of statistics, of which there are none."""


class _HandleOp(ResourceOpKernel):
    """Gives the handle to the resource of its name."""

    def create_resource(self, ctx: OpKernelContext) -> ResourceBase:
        return self.resource_type()


for _name in ("ThreadPoolHandle", "ExperimentalThreadPoolHandle"):
    declare(_name, doc="A handle to a pool of threads.")
for _name in (
    "StatsAggregatorHandle",
    "StatsAggregatorHandleV2",
    "ExperimentalStatsAggregatorHandle",
):
    declare(_name, doc="A handle to a collector of statistics.")
for _name in ("StatsAggregatorSummary", "ExperimentalStatsAggregatorSummary"):
    declare(_name, doc="The statistics of a collector as a serialized Summary, which is empty.")
declare("StatsAggregatorSetSummaryWriter", doc="Has a collector write its statistics: none.")
declare("DummyIterationCounter", doc="A handle in the place of one to a counter of passes.")


@register_kernel("ThreadPoolHandle", "ExperimentalThreadPoolHandle")
class ThreadPoolHandle(_HandleOp):
    """Gives the handle to a pool; the number of its threads is from 0 to 65535."""

    resource_type = ThreadPool

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        threads = construction.get_attr("num_threads", "int32")
        require(threads >= 0, "`num_threads` must be >= 0")
        require(threads < _MAX_THREADS, f"`num_threads` must be < {_MAX_THREADS}")


@register_kernel(
    "StatsAggregatorHandle", "StatsAggregatorHandleV2", "ExperimentalStatsAggregatorHandle"
)
class StatsAggregatorHandle(_HandleOp):
    """Gives the handle to a collector."""

    resource_type = StatsAggregator


@register_kernel("StatsAggregatorSummary", "ExperimentalStatsAggregatorSummary")
class StatsAggregatorSummary(InexpensiveKernel):
    """Gives a Summary without values."""

    def compute(self, ctx: OpKernelContext) -> None:
        with resource_of_handle(ctx, StatsAggregator):
            ctx.set_output(0, object_scalar(b""))


@register_kernel("StatsAggregatorSetSummaryWriter")
class StatsAggregatorSetSummaryWriter(InexpensiveKernel):
    """Takes a collector and a writer."""

    def compute(self, ctx: OpKernelContext) -> None:
        with resource_of_handle(ctx, StatsAggregator):
            return


class IterationCounter(ResourceBase):
    """A counter of passes; handles name it, and nothing stands behind them."""


@register_kernel("DummyIterationCounter")
class DummyIterationCounter(InexpensiveKernel):
    """Gives a handle that names nothing."""

    def compute(self, ctx: OpKernelContext) -> None:
        handle = make_resource_handle("dummy", "dummy_counter", ctx.device, IterationCounter)
        ctx.set_output(0, tensor_of_handle(handle))


@dataset_op(
    "SetStatsAggregatorDataset",
    "ExperimentalSetStatsAggregatorDataset",
    doc="The elements of `input_dataset`, whose statistics a collector may have.",
)
class SetStatsAggregatorDataset(SameDataset):
    """The elements of another dataset."""

    def __init__(self, node: DatasetNode) -> None:
        super().__init__(node)
        with resource_of_handle(node.context, StatsAggregator, 1):
            node.scalar("tag")
            node.scalar("counter_prefix")
