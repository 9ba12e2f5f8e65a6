"""Whatever op makes strings, they are charged while they are made: a process hardly grows past the limit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from tools.campaigns.measured import Measure, measured

import opkernel
from opkernel import raw_ops
from opkernel.graph import Graph, Operation
from opkernel.opdef import global_op_registry
from opkernel.ops.catalogue import MODULE_OF_OP
from opkernel.proto import Example, SequenceExample, Summary, TensorProto
from opkernel.providers.loops.compiled_loop import loops_run
from opkernel.types import DataType

LIMIT = 50 << 20
MOST_GROWTH = 120 << 20  # Python and the C library take the rest

Call = dict[str, Any]


def full(shape: tuple[int, ...] | int, text: bytes) -> Any:
    """Many times the same string, which takes little memory."""
    array = np.empty(shape, object)
    array[...] = text
    return array


def wide(value: Any, *shape: int) -> Any:
    """Many times the same number, which takes no memory."""
    return np.broadcast_to(np.asarray(value), shape)


LETTERS = b"x" * 200_000
LONG = full(1000, b"Az09" * 50_000)
NO_STRINGS = full(0, b"")
NAME = full((), b"a")
NAMES = full(1, b"a")


def example() -> bytes:
    """A feature `a` of a long string."""
    made = Example()
    made.features.feature["a"].bytes_list.value.append(LETTERS)
    return made.SerializeToString()


def sequence() -> bytes:
    """The same as context, and a list `b` of two."""
    made = SequenceExample()
    made.context.feature["a"].bytes_list.value.append(LETTERS)
    for _ in range(2):
        made.feature_lists.feature_list["b"].feature.add().bytes_list.value.append(LETTERS)
    return made.SerializeToString()


EXAMPLE, SEQUENCE = example(), sequence()
SUMMARY = Summary(value=[{"obsolete_old_style_histogram": LETTERS}]).SerializeToString()


def of_messages() -> Call:
    """The attrs of ops on a message `M` of one field, repeated strings."""
    field: Any = {"name": "a", "number": 1, "label": "LABEL_REPEATED", "type": "TYPE_BYTES"}
    file: Any = {"name": "m.proto", "message_type": [{"name": "M", "field": [field]}]}
    described = FileDescriptorSet(file=[file]).SerializeToString()
    return {
        "message_type": "M",
        "field_names": ["a"],
        "descriptor_source": (b"bytes://" + described).decode(),
    }


def sparse_rows(rows: int, each: int) -> Call:
    """A sparse tensor of strings, `[rows, each]`."""
    places = np.indices((rows, each)).reshape(2, -1).T
    return {
        "sparse_indices": np.ascontiguousarray(places),
        "sparse_values": full(rows * each, LETTERS),
        "sparse_shape": np.array([rows, each]),
    }


def crossed(count: int) -> Call:
    """Two rows of strings."""
    row = sparse_rows(1, count)
    return {
        "indices": [row["sparse_indices"]] * 2,
        "values": [full(count, b"x" * 20)] * 2,
        "shapes": [row["sparse_shape"]] * 2,
        "dense_inputs": [],
    }


def ragged() -> Call:
    return {
        "ragged_values": [full(3000, b"x" * 20)] * 2,
        "ragged_row_splits": [np.array([0, 3000])] * 2,
        "sparse_indices": [],
        "sparse_values": [],
        "sparse_shape": [],
        "dense_inputs": [],
        "input_order": "RR",
        "hashed_output": False,
        "num_buckets": 0,
        "hash_key": 0,
        "out_values_type": "string",
        "out_row_splits_type": "int64",
    }


def of_sequences(is_vector: bool) -> Call:
    """The attrs of ops that parse the feature `a` of a context, and `b` of the lists; both are sparse."""
    none = NO_STRINGS if is_vector else []
    return {
        "serialized": full(500, SEQUENCE),
        "context_sparse_keys": NAMES if is_vector else [NAME],
        "context_dense_keys": none,
        "feature_list_sparse_keys": full(1, b"b") if is_vector else [full((), b"b")],
        "feature_list_dense_keys": none,
        "context_dense_defaults": [],
        "context_sparse_types": ["string"],
        "feature_list_sparse_types": ["string"],
    }


CALLS: dict[str, Callable[[], Call]] = {
    "Add": lambda: {"x": LONG, "y": LONG},
    "AsString": lambda: {"input": np.zeros(10_000_000), "width": 50},
    "DecodeBase64": lambda: {"input": LONG},
    "DecodeCSV": lambda: {"records": full(1000, LETTERS), "record_defaults": [full(1, b"")]},
    "DecodeCompressed": lambda: {
        "bytes": full(1, zlib.compress(bytes(1 << 28))),
        "compression_type": "ZLIB",
    },
    "DecodeJSONExample": lambda: {
        "json_examples": full(
            1000, b'{"features":{"feature":{"a":{"bytesList":{"value":["%s"]}}}}}' % LETTERS
        )
    },
    "DecodeProtoV2": lambda: {
        "bytes": full(1000, b"\x0a\xc0\x9a\x0c" + LETTERS),
        "output_types": ["string"],
        **of_messages(),
    },
    "EncodeBase64": lambda: {"input": LONG},
    "EncodePng": lambda: {"image": np.zeros((50, 1000, 1000, 4), np.uint8), "compression": 0},
    "EncodeProto": lambda: {
        "sizes": np.ones((1000, 1), np.int32),
        "values": [full((1000, 1), LETTERS)],
        **of_messages(),
    },
    "EncodeWav": lambda: {
        "audio": np.zeros((30_000_000, 2), np.float32),
        "sample_rate": np.int32(8000),
    },
    "ParseExample": lambda: {
        "serialized": full(1000, EXAMPLE),
        "names": NO_STRINGS,
        "sparse_keys": [NAME],
        "dense_keys": [],
        "dense_defaults": [],
        "sparse_types": ["string"],
        "dense_shapes": [],
    },
    "ParseExampleV2": lambda: {
        "serialized": full(1000, EXAMPLE),
        "names": NO_STRINGS,
        "sparse_keys": NO_STRINGS,
        "dense_keys": NAMES,
        "ragged_keys": NO_STRINGS,
        "dense_defaults": [NO_STRINGS],
        "num_sparse": 0,
        "sparse_types": [],
        "ragged_value_types": [],
        "ragged_split_types": [],
        "dense_shapes": [[1]],
    },
    "ParseSequenceExampleV2": lambda: {
        **of_sequences(True),
        "debug_name": NO_STRINGS,
        "context_ragged_keys": NO_STRINGS,
        "feature_list_ragged_keys": NO_STRINGS,
        "feature_list_dense_missing_assumed_empty": np.zeros(0, bool),
        "Ncontext_sparse": 1,
        "Nfeature_list_sparse": 1,
    },
    "RaggedCross": ragged,
    "ReduceJoin": lambda: {"inputs": full((1000, 1000), b"x" * 200), "reduction_indices": [0]},
    "RegexReplace": lambda: {"input": full(1, LETTERS), "pattern": b"", "rewrite": b"y" * 1000},
    "SerializeManySparse": lambda: {**sparse_rows(1000, 1), "out_type": "string"},
    "SerializeSparse": lambda: {**sparse_rows(1, 1000), "out_type": "string"},
    "SerializeTensor": lambda: {"tensor": np.zeros(30_000_000, np.float32)},
    "SparseCross": lambda: {
        **crossed(3000),
        "hashed_output": False,
        "num_buckets": 0,
        "hash_key": 0,
        "out_type": "string",
        "internal_type": "string",
    },
    "SparseCrossV2": lambda: {**crossed(3000), "sep": b"_X_"},
    "StaticRegexReplace": lambda: {
        "input": full(1, LETTERS),
        "pattern": "x",
        "rewrite": "y" * 1000,
    },
    "StringFormat": lambda: {
        "inputs": [np.full(4_000_000, -(1 << 62))],
        "template": "%s",
        "summarize": -1,
    },
    "StringJoin": lambda: {"inputs": [LONG, LONG]},
    "AudioSummaryV2": lambda: {
        "tag": NAME,
        "tensor": wide(np.float32(0), 1000, 50_000),
        "sample_rate": np.float32(1),
        "max_outputs": 1000,
    },
    "ImageSummary": lambda: {
        "tag": full((), LETTERS),
        "tensor": wide(np.uint8(0), 1000, 1, 1, 1),
        "max_images": 1000,
    },
    "MergeSummary": lambda: {"inputs": [full(1000, SUMMARY)]},
    "ScalarSummary": lambda: {"tags": LONG, "values": wide(np.float32(0), 1000)},
    "TensorSummary": lambda: {"tensor": LONG},
    "TensorSummaryV2": lambda: {
        "tag": NAME,
        "tensor": LONG,
        "serialized_summary_metadata": full((), b""),
    },
    "StringLower": lambda: {"input": LONG},
    "StringNGrams": lambda: {
        "data": full(2000, b"x" * 20),
        "data_splits": np.array([0, 2000]),
        "separator": " ",
        "ngram_widths": list(range(1, 1000)),
        "left_pad": "",
        "right_pad": "",
        "pad_width": 0,
        "preserve_short_sequences": False,
    },
    "StringSplit": lambda: {"input": full(2000, b"abcdef " * 1000), "delimiter": b" "},
    "StringSplitV2": lambda: {"input": full(2000, b"abcdef " * 1000), "sep": b" "},
    "StringStrip": lambda: {"input": full(1000, b" " + LETTERS)},
    "StringUpper": lambda: {"input": LONG},
    "Substr": lambda: {"input": LONG, "pos": wide(3, 1000), "len": wide(190_000, 1000)},
    "UnicodeEncode": lambda: {
        "input_values": np.zeros(20_000_000, np.int32),
        "input_splits": np.array([0, 20_000_000]),
        "output_encoding": "UTF-32-BE",
    },
    "UnicodeTranscode": lambda: {
        "input": LONG,
        "input_encoding": "UTF-8",
        "output_encoding": "UTF-16-BE",
    },
    "UnsortedSegmentJoin": lambda: {
        "inputs": full(1000, LETTERS),
        "segment_ids": wide(0, 1000),
        "num_segments": 1,
    },
}
"""Calls whose strings take much more than the limit, whose inputs take less."""

MAKE_NO_LONG_STRINGS = {
    *("EncodeJpeg", "EncodeJpegVariableQuality", "HistogramSummary"),  # shorter than their inputs
    "AudioSummary",  # gone from graphs of today; as AudioSummaryV2
    *("GetSessionHandle", "FakeQueue", "DtypeWithDefaultOp", "TensorArrayV2", "TensorArrayGradV2"),
    *("ShardedFilename", "ShardedFilespec", "MatchingFiles"),
    *("DatasetToGraph", "DatasetToGraphV2", "Fact"),
    *("ExperimentalStatsAggregatorSummary", "StatsAggregatorSummary"),
    *("GetOptions", "IteratorGetDevice", "ExperimentalIteratorGetDevice"),
    *("IteratorToStringHandle", "MultiDeviceIteratorToStringHandle"),
}
ARE_KEPT_ELSEWHERE = ("Reader", "Barrier", "ReadFile", "RecordInput")
"""Strings of files, which are charged as they are read, and keys that were put in before."""


def makes_strings(name: str) -> bool:
    """Whether an output is always a tensor of strings that is computed."""
    op_def = global_op_registry().look_up_op_def(name)
    outputs = [arg for arg in op_def.output_arg if not arg.is_ref]
    return any(arg.type == DataType.DT_STRING for arg in outputs)


def test_every_op_that_makes_strings_is_called() -> None:
    left = {name for name in MODULE_OF_OP if makes_strings(name)} - {*CALLS} - MAKE_NO_LONG_STRINGS
    assert {name for name in left if not any(word in name for word in ARE_KEPT_ELSEWHERE)} == set()


def run(name: str, inputs: Call) -> None:
    """Run an op in a session; arrays are fed."""
    feeds: dict[Any, Any] = {}
    with Graph().as_default() as graph:

        def given(value: Any) -> Any:
            if isinstance(value, list) and any(isinstance(one, np.ndarray) for one in value):
                return [given(one) for one in value]
            if not isinstance(value, np.ndarray):
                return value
            placeholder = opkernel.placeholder(
                "string" if value.dtype == object else value.dtype, value.shape
            )
            feeds[placeholder] = value
            return placeholder

        getattr(raw_ops, name)(**{key: given(value) for key, value in inputs.items()})
        called: Operation = graph.get_operations()[-1]
        with opkernel.Session(graph, memory_limit_bytes=LIMIT) as session:
            session.run(list(called.outputs), feeds)


def measure_calls() -> None:
    """Measure the calls that standard input names, for `measure_call`."""
    for line in sys.stdin:
        name = line.strip()
        inputs = CALLS[name]()
        with loops_run("numpy"):  # compiling takes memory, too
            found = measured(lambda: None, partial(run, name, inputs), 60)
        print(json.dumps(asdict(found)), flush=True)


@pytest.fixture(scope="module")
def measure_call() -> Iterator[Callable[[str], Measure]]:
    """Measures a call in a process that has run nothing else: memory in pieces makes others grow more."""
    code = f"from {__name__} import measure_calls as run; run()"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        requests, answers = process.stdin, process.stdout

        def measure(name: str) -> Measure:
            requests.write(f"{name}\n")
            requests.flush()
            return Measure(**json.loads(answers.readline()))

        yield measure
        requests.close()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells the peak")
@pytest.mark.parametrize("name", CALLS)
def test_strings_are_charged_as_they_are_made(
    name: str, measure_call: Callable[[str], Measure]
) -> None:
    measure = measure_call(name)
    assert (measure.outcome, measure.fault) == ("RESOURCE_EXHAUSTED", "")
    assert measure.grown_bytes <= MOST_GROWTH


def test_a_tensor_of_strings_may_take_all_of_the_limit() -> None:
    run("StringLower", {"input": full(1000, b"A" * (LIMIT // 1000 - 100))})


def test_a_tensor_of_strings_that_a_message_holds_counts_once() -> None:
    tensor = TensorProto(dtype=DataType.DT_STRING, string_val=[LETTERS] * 200)
    tensor.tensor_shape.dim.add().size = 200
    text = full((), tensor.SerializeToString())
    run("ParseTensor", {"serialized": text, "out_type": "string"})
