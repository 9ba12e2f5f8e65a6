"""Files that are read in pieces: the graph is the one in the file, and memory holds the content once."""

import tracemalloc
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


def test_the_content_of_a_large_file_is_in_memory_once(tmp_path: Path):
    path = tmp_path / "graph.pb"
    path.write_bytes(graph_def_of([10 << 20] * 9).SerializeToString())
    opkernel.load_graph(path)  # what is imported and kept counts before
    tracemalloc.start()  # of Python, not of the messages: what is read
    opkernel.load_graph(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 40 << 20
