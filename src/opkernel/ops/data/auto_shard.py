"""AutoShardDataset: the part of a pipeline's elements for one of several workers.

The op rewrites the graph of its input. By file, it shards the names of files below the stages that read them, and moves
shuffles of the names above the shard: so all workers see the names in one order. By data, it shards the elements. By
hint, it shards where the pipeline has `shard(-1, ...)`.

Source: TensorFlow core/kernels/data/experimental/auto_shard_dataset_op.cc, core/grappler/optimizers/data/auto_shard.cc.
"""

from __future__ import annotations

import re
from typing import ClassVar

import numpy as np

from opkernel.errors import NotFoundError, ResourceExhaustedError
from opkernel.graph import Graph, GraphImporter, ImportOptions
from opkernel.opdef import full_type
from opkernel.opdef.full_type import FullTypeId
from opkernel.ops.data.dataset import DatasetBase, DatasetIterator, PassedOnIterator, dataset_of
from opkernel.ops.data.dataset_graphs import GraphOfDataset, run_graph
from opkernel.ops.data.dataset_op import DatasetNode, dataset_op
from opkernel.ops.data.passed_on import SameDataset
from opkernel.ops.data.selections import SHARD_HINT
from opkernel.ops.input_checks import require
from opkernel.proto import AttrValue, FunctionDef, NodeDef
from opkernel.types import DataType, PartialTensorShape

__all__ = ["auto_shard_dataset"]

_SHARDED = full_type.container_map(FullTypeId.TFT_DATASET, 0, full_type.shard_tensor)
_OFF, _AUTO, _FILE, _DATA, _HINT = -1, 0, 1, 2, 3

# Ops of each kind, in all their versions
_READERS = frozenset(
    f"{name}Dataset"
    for name in ("ArrayRecord", "FixedLengthRecord", "RecordIO", "SSTable", "TextLine", "TFRecord")
)
_OF_SEVERAL = frozenset({"ConcatenateDataset", "ZipDataset"})
_CALLING = frozenset(
    f"{name}Dataset"
    for name in (
        *("ExperimentalParallelInterleave", "FlatMap", "Interleave"),
        *("LegacyParallelInterleave", "ParallelInterleave"),
    )
)
_PASSED_THROUGH = frozenset(
    f"{name}Dataset"
    for name in (
        *("AssertNext", "Batch", "Cache", "ExperimentalMapAndBatch", "ExperimentalParseExample"),
        *("ExperimentalRebatch", "Filter", "Finalize", "MapAndBatch", "Map"),
        *("MaxIntraOpParallelism", "Model", "Optimize", "Options", "PaddedBatch", "ParallelBatch"),
        *("ParallelMap", "ParseExample", "Prefetch", "PrivateThreadPool", "Reduce", "Rebatch"),
        *("Repeat", "Shard", "ShuffleAndRepeat", "Shuffle", "Skip", "Take", "Unbatch", "Window"),
    )
)

# Ops of one version
_ASSERTED = "AssertCardinalityDataset"
_IN_MEMORY = frozenset({"TensorDataset", "TensorSliceDataset"})
_SHUFFLES = ("ShuffleDataset", "ShuffleDatasetV2", "ShuffleDatasetV3")
_ABOVE_SHARDS_OF_DATA = frozenset({"PrefetchDataset", "OptionsDataset", "FinalizeDataset"})
_VERSION = re.compile(r"V\d+$")


def _kind(node: NodeDef) -> str:
    """The op of a node without its version."""
    return _VERSION.sub("", node.op)


class _PipelineOfWorker(GraphOfDataset):
    """The graph of a dataset, which is rewritten for one of several workers."""

    def __init__(self, dataset: DatasetBase, workers: int, index: int) -> None:
        super().__init__(takes_arguments=True)
        self.sink = self.finish(self.add_dataset(dataset))
        self._workers, self._index = workers, index
        self._functions = {one.signature.name: one for one in self.graph_def.library.function}
        self._has_shard: set[str] = set()

    def shard_files(self, consumer: NodeDef, position: int = 0) -> None:
        """Shard the names of the files that an input of a node is read from.

        Raises:
            NotFoundError: a source of the input reads no files, or a stage is not known to keep elements apart.
        """
        node = self.nodes[consumer.input[position]]
        while node.op == _ASSERTED:
            consumer.input[position] = node.input[0]
            node = self.nodes[node.input[0]]
        kind = _kind(node)
        if kind in _OF_SEVERAL:
            for number in range(len(node.input)):
                self.shard_files(node, number)
        elif kind in _CALLING and (inner := self._consumer_of_listed_names(node)):
            self._shard_names(inner)
        elif kind in _READERS:
            self._shard_names(node)
        elif kind not in _CALLING | _PASSED_THROUGH:
            raise NotFoundError(
                f"The dataset cannot be sharded by file: it is made from {node.op}, which reads no "
                "files or is not known here. Use the policy DATA or OFF"
            )
        elif self._calls_reader(node, set()):
            self._shard_names(node)
        else:
            self.shard_files(node)

    def _consumer_of_listed_names(self, node: NodeDef) -> NodeDef | None:
        """The stage that takes what a function makes of tensors in memory, such as names of patterns; None without one."""
        below = self.nodes[node.input[0]]
        while True:
            if _kind(below) in _CALLING:
                source = self.nodes[below.input[0]]
                if source.op in _IN_MEMORY and source.input:
                    return node
            if _kind(below) not in _PASSED_THROUGH:
                return None
            node, below = below, self.nodes[below.input[0]]

    def _calls_reader(self, node: NodeDef, seen: set[str]) -> bool:
        """Whether the function `f` of a node reads files, or a function that makes datasets in it."""
        name = node.attr["f"].func.name if "f" in node.attr else ""
        if name in seen or name not in self._functions:
            return False
        seen.add(name)
        body: FunctionDef = self._functions[name]
        return any(
            (_kind(one) in _READERS and one.input)
            or (_kind(one) in _CALLING and self._calls_reader(one, seen))
            for one in body.node_def
        )

    def _shard_names(self, node: NodeDef) -> None:
        """Put a shard before a stage, and shuffles that come before behind the shard."""
        if node.name in self._has_shard:
            return
        self._has_shard.add(node.name)
        shard = self._add_shard(node)
        for op in _SHUFFLES:
            removed: list[NodeDef] = []
            shard.input[0] = self._without(op, shard.input[0], removed, {})
            if removed and node.op == op:
                node.input[1:] = removed[-1].input[1:]
                node.attr.MergeFrom(_without_elements(removed[-1]).attr)
            elif removed:
                shuffle = _without_elements(removed[-1])
                for attr in ("output_types", "output_shapes"):
                    shuffle.attr[attr].CopyFrom(shard.attr[attr])
                shuffle.input[0] = shard.name
                node.input[0] = self.add(shuffle)
            if removed or node.op == op:
                return

    def _without(self, op: str, name: str, removed: list[NodeDef], known: dict[str, str]) -> str:
        """A node for the same dataset without the stages of an op, which are appended to `removed` as they come."""
        if name not in known:
            node = self.nodes[name]
            if node.op == op:
                removed.append(node)
                known[name] = self._without(op, node.input[0], removed, known)
                return known[name]
            inputs = [self._without(op, one, removed, known) for one in node.input]
            if inputs == [*node.input]:
                known[name] = name
            else:
                copy = NodeDef.FromString(node.SerializeToString())
                copy.input[:] = inputs
                known[name] = self.add(copy)
        return known[name]

    def _add_shard(self, consumer: NodeDef) -> NodeDef:
        """The shard of the first input of a node, which it takes instead.

        Raises:
            NotFoundError: the input is no dataset.
        """
        before = self.nodes[consumer.input[0]]
        if "Dataset" not in before.op and before.name not in self._names.values():
            raise NotFoundError(
                f"The names of the files of {consumer.op} cannot be sharded: they are no dataset"
            )
        shard = NodeDef(op="ShardDataset", input=[before.name, *self._add_numbers()])
        shard.attr["require_non_empty"].b = True
        unknown = PartialTensorShape(None).to_proto()
        shard.attr["output_types"].list.type.append(int(DataType.DT_STRING))
        shard.attr["output_shapes"].list.shape.append(unknown)
        for name, attr in (
            ("output_types", "Toutput_types"),
            ("output_types", "output_types"),
            ("output_shapes", "output_shapes"),
        ):
            if attr in before.attr:
                shard.attr[name].CopyFrom(before.attr[attr])
        consumer.input[0] = self.add(shard)
        return self.nodes[consumer.input[0]]

    def _add_numbers(self) -> list[str]:
        return [self._add_number(self._workers), self._add_number(self._index)]

    def _add_number(self, number: int) -> str:
        return self.add_tensor(np.int64(number), DataType.DT_INT64)

    def shard_data(self, replicas: int) -> None:
        """Shard the elements; a batch for replicas is split first.

        Raises:
            InvalidArgumentError: there is such a batch, and no replica.
        """
        consumer, node = self.sink, self.nodes[self.sink.input[0]]
        while node.op in _ABOVE_SHARDS_OF_DATA:
            consumer, node = node, self.nodes[node.input[0]]
        if node.op == "RebatchDatasetV2":
            require(
                replicas >= 1, f"num_replicas must be at least 1 to split batches, not {replicas}"
            )
            node.op = "RebatchDataset"
            node.input[1:] = [self._add_number(replicas)]
            node.attr["use_fallback"].CopyFrom(AttrValue(b=True))
            for shape in node.attr["output_shapes"].list.shape:
                if shape.dim:
                    shape.dim[0].size = -1
        self._add_shard(consumer)

    def shard_hints(self) -> None:
        """Shard where the pipeline has a hint."""
        for node in [*self.nodes.values()]:
            if node.op == "ShardDataset" and self._value(node.input[1]) == SHARD_HINT:
                node.input[1:] = self._add_numbers()
                node.attr["require_non_empty"].b = True

    def _value(self, name: str) -> int:
        return int(self.arguments[self.nodes[name].attr["index"].i])


def _without_elements(node: NodeDef) -> NodeDef:
    """A copy of a node that says nothing of its elements."""
    copy = NodeDef.FromString(node.SerializeToString())
    for attr in ("output_types", "output_shapes"):
        copy.attr.pop(attr)
    return copy


class AutoShardedDataset(DatasetBase):
    """The elements of a rewritten pipeline."""

    iterator_type: ClassVar[type[DatasetIterator]] = PassedOnIterator

    def __init__(self, rewritten: DatasetBase) -> None:
        super().__init__(rewritten.dtypes, rewritten.shapes, [rewritten])

    def cardinality(self) -> int:
        return self.input.cardinality()


@dataset_op(
    "AutoShardDataset",
    "ExperimentalAutoShardDataset",
    forward_type_fns={"AutoShardDataset": _SHARDED},
    doc="The part of the elements for one of several workers, as a policy says.",
)
def auto_shard_dataset(node: DatasetNode) -> DatasetBase:
    """The dataset of one worker.

    Raises:
        InvalidArgumentError: there is no such worker or policy, or the number of replicas is wrong.
        NotFoundError: files are to be sharded, and the pipeline has another source.
        ResourceExhaustedError: the pipeline has too many stages.
    """
    workers, index = node.scalar("num_workers"), node.scalar("index")
    policy, replicas = node.attr("auto_shard_policy"), node.attr("num_replicas", 0)
    require(workers > 0, "num_workers must be greater than zero.")
    require(0 <= index < workers, f"index must be between 0 and {workers - 1}")
    require(_OFF <= policy <= _HINT, "auto_shard_policy is invalid.")
    require(replicas >= 0, "num_replicas must not be negative")
    if policy == _OFF or (policy == _FILE and workers == 1):
        return SameDataset(node)
    try:
        pipeline = _PipelineOfWorker(node.dataset(), workers, index)
        _rewrite(pipeline, policy, replicas)
    except RecursionError:
        raise ResourceExhaustedError("The dataset has too many stages") from None
    graph = Graph()
    GraphImporter(graph, pipeline.graph_def, ImportOptions(origin=None)).prepare().commit()
    return AutoShardedDataset(dataset_of(run_graph(node.context, graph, pipeline.arguments)))


def _rewrite(pipeline: _PipelineOfWorker, policy: int, replicas: int) -> None:
    """Rewrite a pipeline as a policy says; AUTO shards files where it can, and else elements."""
    if policy == _HINT:
        pipeline.shard_hints()
        return
    if policy == _DATA:
        pipeline.shard_data(replicas)
        return
    try:
        pipeline.shard_files(pipeline.sink)
    except NotFoundError:
        if policy == _FILE:
            raise
        pipeline.shard_data(replicas)
