"""Files that are read in pieces: the graph is the one in the file, and memory holds the content once."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import opkernel
from opkernel.graph.io import message_files
from opkernel.graph.io.message_files import parse_file
from opkernel.proto import DecodeError, GraphDef


def graph_def_of(sizes: list[int]) -> GraphDef:
    """Constants of so many bytes, each the byte of its number over and over, and versions behind them."""
    with opkernel.Graph().as_default() as graph:
        for number, size in enumerate(sizes):
            value = np.full(size, number % 256, np.uint8)
            opkernel.raw_ops.Const(value=value, dtype=opkernel.uint8, name=f"c{number}")
    return graph.as_graph_def()


@pytest.mark.parametrize("piece", [1, 7, 100, 1000, 5000, 10**6])
@pytest.mark.parametrize("sizes", [[3000], [5, 900, 2, 2, 4000, 1], [20] * 50, [0, 3000, 3000]])
@pytest.mark.parametrize("many", [2, 1000])
def test_any_pieces_make_the_same_graph(tmp_path: Path, monkeypatch, piece, sizes, many):
    monkeypatch.setattr(message_files, "_PIECE", piece)
    monkeypatch.setattr(message_files, "_MANY_FIELDS", many)
    graph_def = graph_def_of(sizes)
    path = tmp_path / "graph.pb"
    path.write_bytes(graph_def.SerializeToString())
    assert parse_file(path, GraphDef) == graph_def


@pytest.mark.parametrize("cut", [1, 700, 4000])
def test_a_file_that_is_cut_off_is_damaged(tmp_path: Path, monkeypatch, cut):
    monkeypatch.setattr(message_files, "_PIECE", 512)
    path = tmp_path / "graph.pb"
    path.write_bytes(graph_def_of([600, 10, 5000]).SerializeToString()[:-cut])
    with pytest.raises(DecodeError):
        parse_file(path, GraphDef)


def test_bytes_behind_the_fields_are_damage(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(message_files, "_PIECE", 512)
    path = tmp_path / "graph.pb"
    path.write_bytes(graph_def_of([600, 10, 5000]).SerializeToString() + b"\x07" * 600)
    with pytest.raises(DecodeError):
        parse_file(path, GraphDef)


STEP = """
import sys
import opkernel

def step(path):
    graph = opkernel.load_graph(path)
    with graph.as_default():
        at = opkernel.raw_ops.Placeholder(dtype=opkernel.int32)
        taken = [
            opkernel.raw_ops.GatherV2(params=op.outputs[0], indices=at, axis=0)
            for op in graph.get_operations()
            if op.type == "Const"
        ]
    with opkernel.Session(graph) as session:
        session.run(taken, {at: 3})

def most_kib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

step(sys.argv[1])  # what is imported counts before
before = most_kib()
step(sys.argv[2])
print(most_kib() - before)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="Linux tells the most memory")
def test_a_step_with_large_constants_has_them_in_memory_once(tmp_path: Path):
    small, large = tmp_path / "small.pb", tmp_path / "large.pb"
    small.write_bytes(graph_def_of([10]).SerializeToString())
    large.write_bytes(graph_def_of([10 << 20] * 9).SerializeToString())
    command = [sys.executable, "-c", STEP, str(small), str(large)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert 80 << 10 < int(done.stdout) < 120 << 10
