"""The shipped descriptors and stub are what `tools/generate_proto.py` makes of `protos/`."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from opkernel import proto

ROOT = Path(__file__).resolve().parents[2]


def test_shipped_files_are_current():
    pytest.importorskip("grpc_tools", reason="the protobuf compiler is in the `dev` extra")
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "generate_proto.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_the_stub_declares_what_the_module_has():
    tree = ast.parse((ROOT / "src/opkernel/proto/__init__.pyi").read_text())
    declared = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    messages = {name for name in proto.__all__ if hasattr(getattr(proto, name), "DESCRIPTOR")}
    assert declared == messages - {"Message"}
    assert all(hasattr(proto, name) for name in proto.__all__)
