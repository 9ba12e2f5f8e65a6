"""What a model would ask for when it runs: files to read and write, the network, Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opkernel.cli.meta_graph_needs import RESTORE, SAVE, MetaGraphNeeds, Use
from opkernel.records import dataclass
from opkernel.types import DataType

__all__ = ["ModelRequest", "model_requests"]

READ, WRITE, NETWORK, PYTHON = "read files", "write files", "use the network", "run Python"
_READERS = """
CSVDataset CSVDatasetV2 ExperimentalCSVDataset ExperimentalLMDBDataset ExperimentalMatchingFilesDataset
ExperimentalSqlDataset FixedLengthRecordDataset FixedLengthRecordDatasetV2 FixedLengthRecordReader
FixedLengthRecordReaderV2 InitializeTableFromTextFile InitializeTableFromTextFileV2 LMDBDataset LMDBReader
ListSnapshotChunksDataset LoadAndRemapMatrix LoadDataset MatchingFiles MatchingFilesDataset ReadFile RecordInput
Restore RestoreSlice RestoreV2 SnapshotChunkDataset SnapshotDatasetReader SnapshotNestedDatasetReader SqlDataset
TFRecordDataset TFRecordDatasetV2 TFRecordReader TFRecordReaderV2 TextLineDataset TextLineReader TextLineReaderV2
WholeFileReader WholeFileReaderV2 DTensorRestoreV2 CheckpointHasKey GenerateVocabRemapping ImmutableConst
"""
_WRITERS = """
CacheDataset CacheDatasetV2 CreateSummaryDbWriter CreateSummaryFileWriter DatasetToTFRecord DistributedSave
DumpTensor ExperimentalDatasetToTFRecord MergeV2Checkpoints Save SaveDataset SaveDatasetV2 SaveSlices SaveV2
SnapshotDataset SnapshotDatasetV2 WriteFile DebugIdentity DebugIdentityV2 DebugIdentityV3 DebugNanCount
DebugNumericSummary
"""
_OF_NETWORK = """
DataServiceDataset DataServiceDatasetV2 DataServiceDatasetV3 DataServiceDatasetV4 RegisterDataset RegisterDatasetV2
RpcCall RpcClient RpcServer RpcServerStart RemoteCall ConfigureDistributedTPU ConnectTPUEmbeddingHosts
"""
_OF_PYTHON = "EagerPyFunc PyFunc PyFuncStateless"
REQUESTS: Mapping[str, str] = {
    op: what
    for what, ops in (
        (READ, _READERS),
        (WRITE, _WRITERS),
        (NETWORK, _OF_NETWORK),
        (PYTHON, _OF_PYTHON),
    )
    for op in ops.split()
}
"""What the ops ask for that ask for something; those of TensorFlow that opkernel has no kernels for, too."""
_FILE_SECOND = {
    "CacheDataset", "CacheDatasetV2", "CreateSummaryDbWriter", "CreateSummaryFileWriter", "DatasetToTFRecord",
    "ExperimentalDatasetToTFRecord", "InitializeTableFromTextFile", "InitializeTableFromTextFileV2", "SaveDataset",
    "SaveDatasetV2", "SnapshotDataset", "SnapshotDatasetV2",
}  # fmt: skip
"""The ops whose second input names the file."""
_OWN = {RESTORE, SAVE}
_MAX_STEPS = 100


@dataclass(frozen=True)
class ModelRequest:
    """Nodes of an op that ask for something.

    Attributes:
        what: what they ask for.
        op: the op.
        nodes: the nodes; FUNCTION/NODE in functions.
        files: the names of files that stand in the model.
        needed_by: the parts of the model that need them.
    """

    what: str
    op: str
    nodes: list[str]
    files: list[str]
    needed_by: list[str]

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        names = "what", "op", "nodes", "files", "needed_by"
        return {name: getattr(self, name) for name in names}


def model_requests(needs: MetaGraphNeeds) -> list[ModelRequest]:
    """What the nodes of a MetaGraph ask for.

    What only the Saver needs is left out: a model may read its own variables, and nobody asks it to save.
    So is what reads an asset of the model.
    """
    found: dict[str, ModelRequest] = {}
    for use in needs.uses(REQUESTS):
        if use.needed_by and _OWN.issuperset(use.needed_by):
            continue
        source = _source(use)
        if source in use.assets:
            continue
        op = use.node.op
        request = found.setdefault(op, ModelRequest(REQUESTS[op], op, [], [], []))
        request.nodes.append(use.place)
        request.files.extend(one for one in _files(use, source) if one not in request.files)
        request.needed_by.extend(one for one in use.needed_by if one not in request.needed_by)
    order = [READ, WRITE, NETWORK, PYTHON]
    return sorted(found.values(), key=lambda one: (order.index(one.what), one.op))


def _source(use: Use) -> str:
    """The node or argument that gives a node the name of its file; empty where none does."""
    index = int(use.node.op in _FILE_SECOND)
    inputs = use.node.input[index : index + 1]
    name = _node_name(inputs[0]) if inputs else ""
    for _ in range(_MAX_STEPS):
        node = use.nodes.get(name)
        if node is None or node.op != "Identity" or not node.input:
            break
        name = _node_name(node.input[0])
    return name


def _files(use: Use, source: str) -> list[str]:
    """The names of files that a constant gives to a node."""
    node = use.nodes.get(source)
    if REQUESTS[use.node.op] not in (READ, WRITE) or node is None or node.op != "Const":
        return []
    tensor = node.attr["value"].tensor
    if tensor.dtype != DataType.DT_STRING:
        return []
    return [text.decode("utf-8", "backslashreplace") for text in tensor.string_val]


def _node_name(tensor: str) -> str:
    return tensor.removeprefix("^").partition(":")[0]
