"""What has kernels is declared in its own module; `ops/declared` is for ops without any."""

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator

from tests.architecture.source_code import modules

from opkernel.kernel.registry.kernel_registry import KERNELS
from opkernel.ops.catalogue import MODULE_OF_OP, MODULE_OF_SHAPE_FN
from opkernel.ops.loader import declared_ops_of_extra

DECLARED = "opkernel.ops.declared."
WITH_KERNELS = """
from opkernel.kernel import get_all_registered_kernels
from opkernel.ops.loader import load_all_ops

load_all_ops()
for kernel in get_all_registered_kernels().kernel:
    if kernel.device_type in ("CPU", "DEFAULT"):
        print(kernel.op)
"""
"""A program that prints the ops with kernels."""


def declared_ops() -> Iterator[tuple[str, str]]:
    """The ops whose shape functions stand in `ops/declared`, each with its module there."""
    for name in modules():
        if name.startswith(DECLARED):
            for op in getattr(importlib.import_module(name), "SHAPE_FNS", ()):
                yield op, name.removeprefix("opkernel.ops.")


def test_an_op_with_kernels_has_left_the_declared_ones() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITH_KERNELS], capture_output=True, text=True, check=True
    )
    elsewhere = {
        *KERNELS.names(),
        *declared_ops_of_extra("xla"),
    }  # the runtime, and XLA, have these
    with_kernels = {*done.stdout.split()} - elsewhere
    assert len(with_kernels) > 1000
    found = [(op, module) for op, module in declared_ops() if op in with_kernels | {*MODULE_OF_OP}]
    assert found == []


def test_an_op_is_declared_once_and_where_the_catalogue_says() -> None:
    declared = list(declared_ops())
    assert len(declared) > 300
    assert sorted(declared) == sorted(MODULE_OF_SHAPE_FN.items())


def test_modules_of_declared_ops_register_nothing() -> None:
    """Whoever looks for an op's kernels would not look there."""
    found = [
        f"{name}: {node.func.id}"
        for name, module in modules().items()
        if name.startswith(DECLARED)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id.startswith("register_")
    ]
    assert found == []
