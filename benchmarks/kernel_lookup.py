"""What it costs to find the kernel of a node, in registries of 20 and of 20,000 kernels.

    python benchmarks/kernel_lookup.py

Three registries: each kernel of an op of its own; all kernels of one op, told apart by their label;
ten kernels an op, one for each type. Bounds: at most 1.25 x the time among 20, and under 5 us.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from measure import interleaved, report, rerun_in_clean_environment

from opkernel.kernel import KernelDefBuilder, Name, OpKernel, find_kernel_registration
from opkernel.kernel.registry.kernel_registry import KernelRegistry
from opkernel.kernel.registry.registration import KernelRegistration
from opkernel.proto import AttrValue, NodeDef

FEW, MANY = 20, 20_000
TYPES = ["float", "double", "half", "int8", "int16", "int32", "int64", "uint8", "string", "bool"]
INT64 = AttrValue(type=9)


class Case(NamedTuple):
    """A way to fill a registry: the declaration of each kernel, and a node that it fits."""

    title: str
    declare: Callable[[int], KernelDefBuilder]
    node: Callable[[int], NodeDef]


CASES = [
    Case(
        "each kernel of an op of its own",
        lambda n: Name(f"Op{n}").device("CPU").type_constraint("T", ["float", "int64"]),
        lambda n: NodeDef(name="n", op=f"Op{n}", attr={"T": INT64}),
    ),
    Case(
        "all kernels of one op, by label",
        lambda n: Name("Op").device("CPU").label(f"label{n}").type_constraint("T", "int64"),
        lambda n: NodeDef(
            name="n", op="Op", attr={"T": INT64, "_kernel": AttrValue(s=f"label{n}".encode())}
        ),
    ),
    Case(
        "ten kernels an op, by type",
        lambda n: Name(f"Op{n // 10}").device("CPU").type_constraint("T", TYPES[n % 10]),
        lambda n: NodeDef(name="n", op=f"Op{n // 10}", attr={"T": INT64}),
    ),
]


def lookup(case: Case, size: int) -> Callable[[], object]:
    """A lookup of the kernel in the middle."""
    registry = KernelRegistry()
    for number in range(size):
        kernel_def = case.declare(number).build()
        registry.register(KernelRegistration(kernel_def, "K", OpKernel, "benchmark"))
    return partial(find_kernel_registration, "CPU", case.node(size // 2), registry=registry)


def main() -> None:
    rerun_in_clean_environment()
    for case in CASES:
        sizes = {f"one of {size:,}": lookup(case, size) for size in (FEW, MANY)}
        report(case.title, interleaved(sizes), f"one of {FEW}")


if __name__ == "__main__":
    main()
