"""Programs put on the tasks of a cluster at random: they do what they do in one process, or end in time."""

import random
import time

from tests.distributed.cluster.random_placement import place_at_random
from tests.runtime.effects.random_programs import RandomProgram, seeded
from tools.campaigns.campaign import Finding

import opkernel
from opkernel.distributed import LocalCluster

__all__ = ["case"]

_MOST_SECONDS = 20


def case(rng: random.Random) -> str:
    """Make a program, place it, and run it; now and then end a step early, and run it again."""
    seed, size, tasks = rng.randrange(1 << 30), rng.choice([8, 20, 40]), rng.choice([1, 2, 4])
    program = seeded(seed, size)
    expected = program.run(False, "DATAFLOW")
    with LocalCluster({"worker": tasks}) as cluster:
        place_at_random(program.b.graph, cluster.spec.tasks, rng)
        ended = _interrupted(program, cluster, rng) if rng.random() < 0.3 else ""
        for optimize in (False, True):
            found = program.run(optimize, target=cluster)
            cluster.reset()
            if found != expected:
                raise Finding(
                    f"seeded({seed}, {size}) on {tasks} tasks, passes {optimize}:\n{found}\n"
                    f"in one process:\n{expected}"
                )
    return ended or f"alike on {tasks}"


def _interrupted(program: RandomProgram, cluster: LocalCluster, rng: random.Random) -> str:
    """Run a program whose steps have next to no time; gives how it ended."""
    config = opkernel.SessionConfig(operation_timeout_in_ms=rng.choice([1, 2, 5, 20]))
    start = time.monotonic()
    outcome = program.run(True, target=cluster, config=config)
    cluster.reset()
    if time.monotonic() - start > _MOST_SECONDS:
        raise Finding(f"a step with a deadline took {time.monotonic() - start:.0f} s")
    last = outcome.values[-1] if outcome.values else None
    return f"early: {last.__name__}" if isinstance(last, type) else "early: done in time"
