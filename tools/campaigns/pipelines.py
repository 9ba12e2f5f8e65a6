"""Drawn pipelines: threads change nothing, a saved pass goes on, a beginning and its rest are the whole.

The laws hold without a second opinion; `pipelines_tensorflow` compares the same pipelines with TensorFlow's.
"""

import random

from tests.data.pipelines import AT_ONCE, NEVER, Account, Drawing, account, outcomes, threads_after
from tools.campaigns.campaign import Finding

import opkernel

__all__ = ["case", "lawful_account"]


def case(rng: random.Random) -> str:
    """Draw one pipeline, and pass over it in several ways."""
    seed = rng.getrandbits(31)
    found = lawful_account(seed)
    told = [*found.head, *found.rest]
    elements = [one for one in told if not isinstance(one, str)]
    if {one for one in told if isinstance(one, str)} != {"END"}:
        return "with errors" if "END" in told else "long"
    _check_parts(seed, elements, rng.randint(0, len(elements)))
    return "whole"


def lawful_account(seed: int) -> Account:
    """What a pipeline gives, the same with threads and without, and from a state that was saved.

    Raises:
        Finding: it is not the same, or something comes after the end.
    """
    with threads_after(NEVER):
        found = account(opkernel, seed)
    with threads_after(AT_ONCE):
        threaded = account(opkernel, seed)
    if threaded != found:
        raise Finding(f"seed {seed}: threads change it: {found}\nwith threads: {threaded}")
    if found.restored != found.rest:
        raise Finding(f"seed {seed}: the restored pass gives something else: {found}")
    if found.rest.count("END") > 1:
        raise Finding(f"seed {seed}: the end does not stay: {found}")
    return found


def _check_parts(seed: int, whole: list[object], count: int) -> None:
    taken, skipped = (Drawing(opkernel, seed).pipeline()[1] for _ in range(2))
    first = outcomes(iter(taken.take(count)), opkernel.errors)
    rest = outcomes(iter(skipped.skip(count)), opkernel.errors)
    wanted = [*whole[:count], "END"], [*whole[count:], "END"]
    if (first, rest) != wanted:
        raise Finding(f"seed {seed}: take({count}) and skip({count}): {first}, {rest} of {whole}")
