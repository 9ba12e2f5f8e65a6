"""Programs with state: the same effects in the same order, whatever executes them, whichever passes run."""

import random

from tests.runtime.effects.random_programs import seeded
from tools.campaigns.campaign import Finding

from opkernel.optimization import optimization_passes

__all__ = ["case"]

_PASSES = sorted(one.name for one in optimization_passes() if one.name != "debug_stripper")


def case(rng: random.Random) -> str:
    """Make a program; run it by dataflow without passes, as a plan with one pass or all, and by dataflow."""
    seed, size = rng.randrange(1 << 30), rng.choice([8, 20, 40])
    program = seeded(seed, size)
    expected = program.run(False, "DATAFLOW")
    for optimize, executor in (
        (False, ""),
        (True, ""),
        (True, "DATAFLOW"),
        ({rng.choice(_PASSES)}, ""),
    ):
        found = program.run(optimize, executor)
        if found != expected:
            raise Finding(
                f"seeded({seed}, {size}), passes {optimize}, executor {executor!r}:\n{found}\n"
                f"by dataflow without passes:\n{expected}"
            )
    return "alike"
