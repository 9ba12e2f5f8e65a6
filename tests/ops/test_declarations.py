"""The catalogue against TensorFlow's registries: same OpDefs, same kernels, nothing stale."""

import itertools
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest
from google.protobuf import text_format

from opkernel.kernel import get_registered_kernels_for_op
from opkernel.opdef import global_op_registry
from opkernel.ops.catalogue import MODULE_OF_OP
from opkernel.ops.declared import tensorflow_op_defs
from opkernel.proto import KernelDef, OpDef, OpList
from opkernel.runtime.plan.functional_ops import RUN_BY_EXECUTORS
from opkernel.types import DataType

ROOT = Path(__file__).resolve().parent.parent.parent
# TensorFlow registers kernels that no node reaches: its OpDefs forbid these types. Conj of
# variants needs a registry of functions on variants, which does not exist yet.
UNREACHED = {
    "Acos": [frozenset({("T", number)}) for number in (3, 4, 5, 6, 9, 17, 22, 23)],
    "BatchMatrixInverse": [frozenset({("T", int(DataType.DT_HALF))})],
    **{
        op: [frozenset({("T", number)}) for number in (8, 18)]
        for op in ("BatchMatrixSolve", "BatchMatrixTriangularSolve", "BatchSelfAdjointEigV2")
    },
    "Conj": [frozenset({("T", int(DataType.DT_VARIANT))})],
}
# TensorFlow has kernels of these for GPUs alone; ours take all types that the op allows.
ON_GPUS_ALONE = frozenset({"NcclAllReduce"})
Combination = frozenset[tuple[str, int]]


def without_docs(op_def: OpDef) -> OpDef:
    bare = OpDef.FromString(op_def.SerializeToString())
    bare.summary = bare.description = ""
    for arg in (*bare.input_arg, *bare.output_arg):
        arg.description = ""
    for attr in bare.attr:
        attr.description = ""
    if bare.HasField("deprecation"):
        bare.deprecation.explanation = ""
    return bare


def combinations(constraints: Iterable[tuple[str, Iterable[int]]]) -> set[Combination]:
    """The types that a kernel takes, one set of (attr, type) for each way to choose."""
    choices = [[(name, int(value)) for value in values] for name, values in constraints]
    return {frozenset(chosen) for chosen in itertools.product(*choices)}


def of_kernel_def(kernel: KernelDef) -> set[Combination]:
    return combinations((c.name, c.allowed_values.list.type) for c in kernel.constraint)


@pytest.fixture(scope="module")
def tensorflow_kernels(shared: Path) -> dict[str, set[Combination]]:
    found: dict[str, set[Combination]] = defaultdict(set)
    with (shared / "facts" / "tf_kernels_cpu.jsonl").open() as lines:
        for kernel in map(json.loads, lines):
            constraints = [
                (c["name"], [getattr(DataType, t) for t in c.get("type", [])])
                for c in kernel["constraint"]
            ]
            found[kernel["op"]] |= combinations(constraints)
    return found


@pytest.mark.shared
def test_the_table_is_that_of_tensorflow(shared: Path) -> None:
    ops = text_format.Parse((shared / "facts" / "tf_ops.pbtxt").read_text(), OpList())
    assert list(tensorflow_op_defs().values()) == sorted(ops.op, key=lambda op: op.name)


@pytest.mark.parametrize("name", sorted(MODULE_OF_OP))
def test_the_op_is_declared_as_tensorflow_declares_it(name: str) -> None:
    ours = without_docs(global_op_registry().look_up_op_def(name))
    assert ours == without_docs(tensorflow_op_defs()[name])


@pytest.mark.shared
@pytest.mark.parametrize("name", sorted(MODULE_OF_OP))
def test_its_kernels_take_the_types_that_tensorflows_take(
    name: str, tensorflow_kernels: dict[str, set[Combination]]
) -> None:
    kernels = [k for k in get_registered_kernels_for_op(name).kernel if k.device_type == "CPU"]
    if not kernels:
        pytest.skip("declared, without a kernel")
    wanted = tensorflow_kernels[name].difference(UNREACHED.get(name, ()))
    if name in ON_GPUS_ALONE:
        wanted = {frozenset()}
    assert set().union(*map(of_kernel_def, kernels)) == wanted


@pytest.mark.shared
def test_ops_without_a_kernel_that_tensorflow_has_say_why(
    tensorflow_kernels: dict[str, set[Combination]],
) -> None:
    without = {
        name
        for name in tensorflow_kernels.keys() - RUN_BY_EXECUTORS
        if not get_registered_kernels_for_op(name).kernel
    }
    assert [op for op in sorted(without) if not global_op_registry().traits(op).why_no_kernel] == []


def test_the_catalogue_is_current() -> None:
    command = [sys.executable, str(ROOT / "tools" / "generate_catalogue.py"), "--check"]
    assert subprocess.run(command, check=False).returncode == 0
