"""Programs of NumPy alone compute what the kernels compute, on recorded calls of each op."""

import functools
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opkernel.decompile import decompile
from opkernel.decompile.numpy_functions import numpy_functions
from opkernel.errors import UnimplementedError
from opkernel.graph import Graph, Operation, Tensor, import_graph_def
from opkernel.graph.edit.subgraph import prune_and_order
from opkernel.proto import GraphDef
from opkernel.runtime import Session

CALLS = Path(__file__).parent.parent / "data" / "op_calls.pb.xz"
# Of lists and state: see the tests of programs.
WITHOUT_CALLS = {
    op
    for op in numpy_functions().names()
    if op.startswith(("TensorArray", "Stack", "TensorList", "EmptyTensorList"))
} | {"Assert", "DeepCopy", "GuaranteeConst"}
# Labels that are repeated in the output: NumPy's einsum refuses them.
NOT_OF_NUMPY = {"recorded/Einsum_3"}


@functools.cache
def session() -> Session:
    graph = Graph()
    with graph.as_default():
        import_graph_def(GraphDef.FromString(lzma.decompress(CALLS.read_bytes())), name="")
    return Session(graph)


@functools.cache
def calls() -> dict[str, list[Operation]]:
    found: dict[str, list[Operation]] = {}
    for op in session().graph.get_operations():
        found.setdefault(op.type, []).append(op)
    return found


def compared(op: Operation) -> Iterator[tuple[Any, Any]]:
    """What a program and a session give for a call, from its constants on."""
    types = {one: one.dtype.base for one in op.outputs}
    fetches = [
        one
        for one, dtype in types.items()
        if not dtype.is_quantized and not dtype.numpy_dtype.hasobject
    ]
    feeds = [one.outputs[0] for one in prune_and_order(fetches, [], []) if one.type == "Const"]
    if not fetches:
        return
    values = session().run(feeds)
    namespace = program_of(feeds, fetches)
    found = namespace["model"](*values)
    wanted = session().run(fetches, dict(zip(feeds, values, strict=True)))
    yield from zip(found, wanted, strict=True)


def program_of(feeds: list[Tensor], fetches: list[Tensor]) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "program"}
    exec(decompile(feeds, fetches, "a call", with_numpy_only=True).source, namespace)
    return namespace


@pytest.mark.parametrize("op", sorted({*numpy_functions().names()} - WITHOUT_CALLS))
def test_functions_compute_what_kernels_compute(op: str) -> None:
    done = 0
    for call in calls()[op]:
        if call.name in NOT_OF_NUMPY:
            continue
        try:
            for found, wanted in compared(call):
                assert np.asarray(found).dtype == wanted.dtype, call.name
                np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=1e-4, err_msg=call.name)
                done += 1
        except (UnimplementedError, NotImplementedError):
            continue
    assert done
