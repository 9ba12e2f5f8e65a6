"""Programs with state, calls, conditionals and loops do with XLA what they do without: `tools/campaigns/engines.py` makes more."""

import pytest
from tests.runtime.effects.random_programs import seeded

import opkernel

pytest.importorskip("jax")
pytestmark = pytest.mark.jax


@pytest.mark.parametrize("optimize", [False, True])
@pytest.mark.parametrize(
    ("seed", "size"),
    [
        (460894936, 40),  # a cluster calls a function by name
        (
            1064821069,
            40,
        ),  # a loop of a function counts in its kernel, and the third step has a plan for its shapes
        (1, 20),
        (2, 20),
    ],
)
def test_a_program_does_what_it_does_without(seed, size, optimize):
    program = seeded(seed, size)
    config = opkernel.SessionConfig(jit="xla!", min_cluster_size=1)
    assert program.run(optimize, config=config) == program.run(False, "DATAFLOW")
