"""Every op that opens files, as nodes that do so in a folder."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import opkernel
from opkernel import raw_ops
from opkernel.checkpoint import BundleWriter, TensorSlice
from opkernel.checkpoint.slices import SlicesWriter
from opkernel.data import Dataset, DatasetSpec
from opkernel.graph.core.default_graph import get_default_graph

__all__ = ["FILE_OPS", "FileOp", "fill", "text"]


def text(*values: str | Path) -> Any:
    """A scalar string, or a vector of several."""
    found = np.array([str(value).encode() for value in values], object)
    return found if len(values) > 1 else found[0]


def vector(value: str) -> Any:
    return np.array([value.encode()], object)


def scalar(value: str | Path) -> Any:
    array = np.empty((), object)
    array[()] = str(value).encode()
    return array


_RECORD = bytes.fromhex("0300000000000000b099490e6f6e6501405508")
"""A record: its length, the checksum of that, "one", and its checksum."""


def fill(folder: Path) -> None:
    """Write the files that the ops read."""
    folder.mkdir(parents=True)
    (folder / "in.txt").write_bytes(b"one\ntwo\n")
    (folder / "numbers").write_bytes(np.arange(2, dtype=np.float32).tobytes())
    (folder / "weights").write_bytes(b"1\n2\n3\n")
    (folder / "records").write_bytes(_RECORD)
    with contextlib.closing(sqlite3.connect(folder / "database")):
        (folder / "database").touch()
    with BundleWriter(folder / "matrix") as writer:
        writer.add("a", np.ones((2, 1), np.float32))
    with BundleWriter(folder / "v2") as writer:
        writer.add("a", np.ones(2, np.float32))
    for part in ("part-0", "part-1"):
        with BundleWriter(folder / part) as writer:
            writer.add(part, np.ones(2, np.float32))
    old = SlicesWriter(folder / "v1")
    old.add("a", (2,), TensorSlice.whole(1), np.ones(2, np.float32))
    old.finish()
    Dataset.from_tensors(np.float32(1)).save(folder / "dataset")
    (shard,) = (folder / "dataset").glob("*/*.shard")
    shutil.copytree(shard, folder / "shard")
    (folder / "distributed" / "chunks").mkdir(parents=True)
    (folder / "distributed" / "chunks" / "chunk_0_0_1").touch()
    (folder / "distributed" / "DONE").touch()


@dataclass(frozen=True)
class FileOp:
    """An op that opens files.

    Attributes:
        op: its name.
        build: adds nodes to the default graph that open files of a folder; their outputs, or the operation.
        writes: what is there, in the folder, once they have run; empty where they read.
        in_functions: whether functions may have it: those that take references may not.
    """

    op: str
    build: Callable[[Path], Any]
    writes: str = ""
    in_functions: bool = True


def _sampler(folder: Path) -> Any:
    return raw_ops.FixedUnigramCandidateSampler(
        true_classes=np.zeros((1, 1), np.int64),
        num_true=1,
        num_sampled=1,
        unique=False,
        range_max=3,
        vocab_file=str(folder / "weights"),
    )


def _reading(version: str, up_to: bool) -> Callable[[Path], Any]:
    def build(folder: Path) -> Any:
        queue = getattr(raw_ops, f"FIFOQueue{version}")(component_types=[opkernel.string])
        put = getattr(raw_ops, f"QueueEnqueue{version}")(
            handle=queue, components=[scalar(folder / "in.txt")]
        )
        reader = getattr(raw_ops, f"TextLineReader{version}")()
        handles = {"reader_handle": reader, "queue_handle": queue}
        with opkernel.graph.get_default_graph().control_dependencies([put]):
            if up_to:
                return getattr(raw_ops, f"ReaderReadUpTo{version}")(
                    **handles, num_records=np.int64(1)
                )
            return getattr(raw_ops, f"ReaderRead{version}")(**handles)

    return build


def _table(version: str) -> Callable[[Path], Any]:
    def build(folder: Path) -> Any:
        handle = getattr(raw_ops, f"HashTable{version}")(
            key_dtype=opkernel.string, value_dtype=opkernel.int64
        )
        return getattr(raw_ops, f"InitializeTableFromTextFile{version}")(
            table_handle=handle, filename=scalar(folder / "in.txt"), key_index=-2, value_index=-1
        )

    return build


def _restore_v2(folder: Path) -> Any:
    return raw_ops.RestoreV2(
        prefix=scalar(folder / "v2"),
        tensor_names=vector("a"),
        shape_and_slices=vector(""),
        dtypes=[opkernel.float32],
    )


def _save_v2(folder: Path) -> Any:
    return raw_ops.SaveV2(
        prefix=scalar(folder / "saved-v2"),
        tensor_names=vector("a"),
        shape_and_slices=vector(""),
        tensors=[np.ones(2, np.float32)],
    )


def _save(op: str) -> Callable[[Path], Any]:
    def build(folder: Path) -> Any:
        slices = {"shapes_and_slices": vector("")} if op == "SaveSlices" else {}
        return getattr(raw_ops, op)(
            filename=scalar(folder / f"saved-{op}"),
            tensor_names=vector("a"),
            data=[np.ones(2, np.float32)],
            **slices,
        )

    return build


def _merge(folder: Path) -> Any:
    return raw_ops.MergeV2Checkpoints(
        checkpoint_prefixes=text(folder / "part-0", folder / "part-1"),
        destination_prefix=scalar(folder / "merged"),
    )


def _dump(folder: Path) -> Any:
    return raw_ops.DumpTensor(
        tensor_data=np.float32(1),
        log_dir_path=str(folder),
        file_name="dumped",
        enabled=True,
        func_name="f",
        node_name="n",
    )


def _only(dataset: Any, dtype: Any) -> Any:
    """The only element of a dataset of scalars, which the pass to its end gives."""
    return raw_ops.DatasetToSingleElement(
        dataset=dataset, output_types=[dtype], output_shapes=[[]], name="only"
    )


def _records(op: str, file: str, **arguments: Any) -> Callable[[Path], Any]:
    def build(folder: Path) -> Any:
        dataset = getattr(raw_ops, op)(
            filenames=scalar(folder / file), buffer_size=np.int64(0), **arguments
        )
        attrs: dict[str, Any] = {"output_types": [opkernel.string], "output_shapes": [[]]}
        first = raw_ops.TakeDataset(input_dataset=dataset, count=np.int64(1), **attrs)
        return _only(first, opkernel.string)

    return build


def _remapping(folder: Path) -> Any:
    remapping, _ = raw_ops.GenerateVocabRemapping(
        new_vocab_file=scalar(folder / "in.txt"),
        old_vocab_file=scalar(folder / "in.txt"),
        new_vocab_offset=0,
        num_new_vocab=2,
    )
    return remapping


def _matrix(folder: Path) -> Any:
    return raw_ops.LoadAndRemapMatrix(
        ckpt_path=scalar(folder / "matrix"),
        old_tensor_name=scalar("a"),
        row_remapping=np.arange(2),
        col_remapping=np.zeros(0, np.int64),
        initializing_values=np.zeros(0, np.float32),
        num_rows=2,
        num_cols=1,
    )


def _rows(op: str) -> Callable[[Path], Any]:
    def build(folder: Path) -> Any:
        dataset = getattr(raw_ops, op)(
            filenames=scalar(folder / "in.txt"),
            compression_type=_PLAIN,
            buffer_size=np.int64(8),
            header=np.bool_(True),
            field_delim=scalar(","),
            use_quote_delim=np.bool_(True),
            na_value=_PLAIN,
            select_cols=_NO_OFFSETS,
            record_defaults=[vector("")],
            output_shapes=[[]],
            **({"exclude_cols": _NO_OFFSETS} if op == "CSVDatasetV2" else {}),
        )
        return _only(dataset, opkernel.string)

    return build


def _query(op: str) -> Callable[[Path], Any]:
    def build(folder: Path) -> Any:
        dataset = getattr(raw_ops, op)(
            driver_name=scalar("sqlite"),
            data_source_name=scalar(folder / "database"),
            query=scalar("SELECT 1"),
            output_types=[opkernel.int64],
            output_shapes=[[]],
        )
        return _only(dataset, opkernel.int64)

    return build


def _found(op: str) -> Callable[[Path], Any]:
    return lambda folder: _only(
        getattr(raw_ops, op)(patterns=scalar(folder / "*.txt")), opkernel.string
    )


def _cached(op: str) -> Callable[[Path], Any]:
    def build(folder: Path) -> Any:
        attrs: dict[str, Any] = {"output_types": [opkernel.int64], "output_shapes": [[]]}
        start, stop = np.int64(0), np.int64(1)
        numbers = raw_ops.RangeDataset(start=start, stop=stop, step=stop, **attrs)
        cache = {"cache": raw_ops.DummyMemoryCache()} if op == "CacheDatasetV2" else {}
        kept = getattr(raw_ops, op)(
            input_dataset=numbers, filename=scalar(folder / f"cached-{op}"), **cache, **attrs
        )
        return _only(kept, opkernel.int64)

    return build


def _record_file(op: str) -> Callable[[Path], Any]:
    def build(folder: Path) -> Any:
        return getattr(raw_ops, op)(
            input_dataset=raw_ops.TensorDataset(components=[_PLAIN], output_shapes=[[]]),
            filename=scalar(folder / f"written-{op}"),
            compression_type=_PLAIN,
        )

    return build


def _events(folder: Path) -> Any:
    writer = raw_ops.SummaryWriter(shared_name=f"writer {next(_numbers)}")
    return raw_ops.CreateSummaryFileWriter(
        writer=writer,
        logdir=scalar(folder / "logs"),
        max_queue=np.int32(1),
        flush_millis=np.int32(1),
        filename_suffix=_PLAIN,
    )


_numbers = itertools.count()
_SCALAR: dict[str, Any] = {"output_types": [opkernel.float32], "output_shapes": [[]]}


def _function_of(python: Callable[..., Any], spec: Any) -> Any:
    """A reference to a function, which the default graph then has."""
    traced = opkernel.function(python).get_concrete_function(spec).graph
    traced.add_to(get_default_graph())
    return traced.reference


def _saved(op: str) -> Callable[[Path], Any]:
    def build(folder: Path) -> Any:
        spec = opkernel.TensorSpec([], opkernel.float32)
        made = getattr(raw_ops, op)(
            input_dataset=raw_ops.TensorDataset(components=[np.float32(1)], output_shapes=[[]]),
            path=scalar(folder / f"saved-{op}"),
            shard_func_other_args=[],
            shard_func=_function_of(lambda x: np.int64(0), spec),
            **(_SCALAR if op == "SaveDatasetV2" else {}),
        )
        return _only(made, opkernel.float32) if op == "SaveDatasetV2" else made

    return build


def _reader() -> Any:
    def read(shards: Any) -> Any:
        return Dataset(shards, DatasetSpec(number)).flat_map(lambda one: one).variant_tensor

    number = opkernel.TensorSpec([], opkernel.float32)
    return _function_of(read, opkernel.TensorSpec([], opkernel.variant))


def _snapshot(folder: Path) -> Any:
    made = raw_ops.SnapshotDataset(
        input_dataset=raw_ops.TensorDataset(components=[np.float32(1)], output_shapes=[[]]),
        path=scalar(folder / "snapshot"),
        snapshot_name="one",
        **_SCALAR,
    )
    return _only(made, opkernel.float32)


def _snapshot_v2(folder: Path) -> Any:
    spec = opkernel.TensorSpec([], opkernel.float32)
    made = raw_ops.SnapshotDatasetV2(
        input_dataset=raw_ops.TensorDataset(components=[np.float32(1)], output_shapes=[[]]),
        path=scalar(folder / "snapshot-v2"),
        reader_func_other_args=[],
        shard_func_other_args=[],
        hash_valid=True,
        hash=7,
        reader_func=_reader(),
        shard_func=_function_of(lambda x: np.int64(0), spec),
        **_SCALAR,
    )
    return _only(made, opkernel.float32)


def _loaded(folder: Path) -> Any:
    return _only(
        raw_ops.LoadDataset(
            path=scalar(folder / "dataset"),
            reader_func_other_args=[],
            reader_func=_reader(),
            **_SCALAR,
        ),
        opkernel.float32,
    )


def _of_shard(folder: Path) -> Any:
    shard = scalar(folder / "shard")
    made = raw_ops.SnapshotDatasetReader(
        shard_dir=shard, start_index=np.int64(0), version=2, **_SCALAR
    )
    return _only(made, opkernel.float32)


def _of_chunk(folder: Path) -> Any:
    chunk = scalar(folder / "shard" / "00000000.snapshot")
    return _only(raw_ops.SnapshotChunkDataset(chunk_file=chunk, **_SCALAR), opkernel.float32)


def _chunks(folder: Path) -> Any:
    attrs: dict[str, Any] = {"output_types": [opkernel.string], "output_shapes": [[]]}
    names = raw_ops.ListSnapshotChunksDataset(snapshot_path=scalar(folder / "distributed"), **attrs)
    return _only(names, opkernel.string)


_PLAIN = scalar("")
_SIZES = {"header_bytes": np.int64(0), "record_bytes": np.int64(4), "footer_bytes": np.int64(0)}
_NO_OFFSETS = np.zeros(0, np.int64)

_OPS = [
    FileOp("ReadFile", lambda folder: raw_ops.ReadFile(filename=scalar(folder / "in.txt"))),
    FileOp("MatchingFiles", lambda folder: raw_ops.MatchingFiles(pattern=scalar(folder / "*.txt"))),
    FileOp(
        "WriteFile",
        lambda folder: raw_ops.WriteFile(filename=scalar(folder / "written"), contents=scalar("x")),
        writes="written",
    ),
    FileOp("RestoreV2", _restore_v2),
    FileOp(
        "Restore",
        lambda folder: raw_ops.Restore(
            file_pattern=scalar(folder / "v1"), tensor_name=scalar("a"), dt=opkernel.float32
        ),
    ),
    FileOp(
        "RestoreSlice",
        lambda folder: raw_ops.RestoreSlice(
            file_pattern=scalar(folder / "v1"),
            tensor_name=scalar("a"),
            shape_and_slice=scalar(""),
            dt=opkernel.float32,
        ),
    ),
    FileOp("SaveV2", _save_v2, writes="saved-v2.index"),
    FileOp("Save", _save("Save"), writes="saved-Save"),
    FileOp("SaveSlices", _save("SaveSlices"), writes="saved-SaveSlices"),
    FileOp("MergeV2Checkpoints", _merge, writes="merged.index"),
    FileOp("DumpTensor", _dump, writes="dumped"),
    FileOp(
        "ImmutableConst",
        lambda folder: raw_ops.ImmutableConst(
            dtype=opkernel.float32, shape=[2], memory_region_name=str(folder / "numbers")
        ),
    ),
    FileOp("FixedUnigramCandidateSampler", _sampler),
    FileOp("GenerateVocabRemapping", _remapping),
    FileOp("LoadAndRemapMatrix", _matrix),
    FileOp(
        "RecordInput",
        lambda folder: raw_ops.RecordInput(
            file_pattern=str(folder / "records"), file_parallelism=1, batch_size=1
        ),
    ),
    *(FileOp(op, _rows(op)) for op in ("CSVDataset", "CSVDatasetV2", "ExperimentalCSVDataset")),
    *(FileOp(op, _query(op)) for op in ("SqlDataset", "ExperimentalSqlDataset")),
    FileOp("InitializeTableFromTextFileV2", _table("V2")),
    FileOp("InitializeTableFromTextFile", _table(""), in_functions=False),
    FileOp("ReaderReadV2", _reading("V2", up_to=False)),
    FileOp("ReaderReadUpToV2", _reading("V2", up_to=True)),
    FileOp("ReaderRead", _reading("", up_to=False), in_functions=False),
    FileOp("ReaderReadUpTo", _reading("", up_to=True), in_functions=False),
    FileOp("TextLineDataset", _records("TextLineDataset", "in.txt", compression_type=_PLAIN)),
    FileOp("TFRecordDataset", _records("TFRecordDataset", "records", compression_type=_PLAIN)),
    FileOp(
        "TFRecordDatasetV2",
        _records("TFRecordDatasetV2", "records", compression_type=_PLAIN, byte_offsets=_NO_OFFSETS),
    ),
    FileOp("FixedLengthRecordDataset", _records("FixedLengthRecordDataset", "numbers", **_SIZES)),
    FileOp(
        "FixedLengthRecordDatasetV2",
        _records("FixedLengthRecordDatasetV2", "numbers", compression_type=_PLAIN, **_SIZES),
    ),
    FileOp("MatchingFilesDataset", _found("MatchingFilesDataset")),
    FileOp("ExperimentalMatchingFilesDataset", _found("ExperimentalMatchingFilesDataset")),
    FileOp("SaveDataset", _saved("SaveDataset"), writes="saved-SaveDataset/snapshot.metadata"),
    FileOp(
        "SaveDatasetV2", _saved("SaveDatasetV2"), writes="saved-SaveDatasetV2/snapshot.metadata"
    ),
    FileOp("LoadDataset", _loaded),
    FileOp("SnapshotDataset", _snapshot, writes="snapshot/custom-one/snapshot.metadata"),
    FileOp("SnapshotDatasetV2", _snapshot_v2, writes="snapshot-v2/7/snapshot.metadata"),
    FileOp("SnapshotDatasetReader", _of_shard),
    FileOp("SnapshotChunkDataset", _of_chunk),
    FileOp("ListSnapshotChunksDataset", _chunks),
    FileOp("CacheDataset", _cached("CacheDataset"), writes="cached-CacheDataset.index"),
    FileOp("CacheDatasetV2", _cached("CacheDatasetV2"), writes="cached-CacheDatasetV2.index"),
    *(
        FileOp(op, _record_file(op), writes=f"written-{op}")
        for op in ("DatasetToTFRecord", "ExperimentalDatasetToTFRecord")
    ),
    FileOp("CreateSummaryFileWriter", _events, writes="logs"),
]
FILE_OPS = {one.op: one for one in _OPS}
