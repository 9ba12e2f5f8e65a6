"""Damaged graphs: each gives an OpError or a correct run, quickly and in bounded memory.

Ten thousand seeded mutations of graphs: bytes flipped, cut off and inserted; nodes, inputs and attrs
exchanged, dropped and set to extreme values.
"""

import random
from pathlib import Path

import pytest
from tests.runtime.small_graph import small_graph
from tools.campaigns.damage import MUTATIONS
from tools.campaigns.ways import ends_of, feeds_of

import opkernel
import opkernel.proto
from opkernel.errors import OpError
from opkernel.graph import Graph, import_graph_def
from opkernel.proto import GraphDef

DATA = Path(__file__).parent.parent / "data"
ROUNDS = 100
MUTATIONS_A_ROUND = 100


def load_and_run(data: bytes) -> None:
    """Import a GraphDef and run all that nothing else consumes, within limits."""
    try:
        graph_def = GraphDef.FromString(data)
    except opkernel.proto.DecodeError:
        return  # load_graph tells this as an OpError: tests/graph
    with Graph().as_default() as graph:
        import_graph_def(graph_def, name="", graph=graph)
        session = opkernel.Session(graph, memory_limit_bytes=1 << 24)
        options = opkernel.RunOptions(timeout_in_ms=2000)
        session.run(ends_of(graph), feeds_of(graph), options)


@pytest.mark.parametrize("sample", ["small", "functions"])
@pytest.mark.parametrize("round_number", range(ROUNDS // 2))
def test_a_damaged_graph_gives_an_op_error_or_runs(sample: str, round_number: int) -> None:
    data = SAMPLES[sample]
    rng = random.Random(f"{sample} {round_number}")
    for number in range(MUTATIONS_A_ROUND):
        damaged = rng.choice(MUTATIONS)(data, rng)
        try:
            load_and_run(damaged)
        except OpError:
            continue
        except BaseException as error:  # the message must say which mutation it was
            raise AssertionError(f"mutation {number} of round {round_number}") from error


SAMPLES = {
    "small": small_graph(),
    "functions": (DATA / "graph_with_functions.pb").read_bytes(),
}


@pytest.mark.parametrize("sample", sorted(SAMPLES))
def test_the_undamaged_graph_runs(sample: str) -> None:
    load_and_run(SAMPLES[sample])
