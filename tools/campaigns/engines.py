"""Calls of ops in sessions with an engine: they give what they give without, or docs/engines.md says what is different.

python -m tools.campaigns engines --seed 7 --seconds 120    some calls
python -m tools.campaigns.engines [ENGINE ...]              every call of the repository and of ../shared/vectors, in
                                                            all shapes, with all attrs and all special numbers

The sessions stand in a process of their own: a library that crashes ends that one.
"""

import functools
import itertools
import random
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.runtime.effects.random_programs import seeded
from tools.campaigns.campaign import Finding
from tools.campaigns.engine_calls import (
    KINDS,
    SHAPES,
    EngineCall,
    in_float32,
    pointwise,
    recorded_calls,
    sampled_calls,
    special_feeds,
    with_attrs,
    with_shapes,
)
from tools.campaigns.engine_child import Answer, EngineChild, EngineCrash
from tools.campaigns.engine_differences import documented, is_ordinary, refusal

import opkernel
from opkernel.engines import engine_named, registered_engines
from opkernel.errors import UnimplementedError

__all__ = ["SECONDS_A_CASE", "begin", "case"]

SECONDS_A_CASE = 150
"""Longer than the child is waited for, which says which call it was."""
_child = EngineChild()


@functools.cache
def _engines() -> list[str]:
    """The engines that are installed."""
    found = []
    for name in registered_engines():
        try:
            engine_named(name).check_installed()
        except UnimplementedError:
            continue
        found.append(name)
    return found


@functools.cache
def _taken(engine: str) -> list[EngineCall]:
    """The calls of the repository that an engine takes."""
    pool = [*sampled_calls(), *map(in_float32, sampled_calls())]
    return [call for call in pool if call is not None and not refusal(engine, call)]


def begin() -> None:
    """Import the libraries and look at all calls, which takes longer than a case may."""
    for engine in _engines():
        first = _taken(engine)[0]
        _child.ask(engine, first, [first.feeds])


def case(rng: random.Random) -> str:
    """Change a call, and run it with an engine and without; now and then a program with state."""
    if not _engines():
        return "no engine is installed"
    engine = rng.choice(_engines())
    if rng.random() < 0.1:
        return _program(engine, rng)
    call = rng.choice(_taken(engine))
    if rng.random() < 0.3:
        call = rng.choice([*with_attrs(call)] or [("", call)])[1]
    if rng.random() < 0.7:
        call = with_shapes(call, rng.choice([*SHAPES])) or call
    special = [*special_feeds(engine, call)]
    chosen = rng.sample(special, min(len(special), rng.choice([0, 0, 5])))
    return _checked(engine, call, [("plain", call.feeds), *chosen], is_frozen=rng.random() < 0.3)


def _program(engine: str, rng: random.Random) -> str:
    """Run a program with state; its ops crash nothing."""
    seed, size = rng.randrange(1 << 30), rng.choice([8, 20, 40])
    program = seeded(seed, size)
    expected = program.run(False, "DATAFLOW")
    config = opkernel.SessionConfig(jit=f"{engine}!", min_cluster_size=1)
    found = program.run(rng.random() < 0.5, config=config)
    if found != expected:
        raise Finding(f"seeded({seed}, {size}) with {engine}:\n{found}\nwithout:\n{expected}")
    return "alike"


def _checked(
    engine: str, call: EngineCall, rounds: list[tuple[str, Any]], *, is_frozen: bool
) -> str:
    """How a call ended; raise Finding where it must not end so."""
    try:
        answers = _child.ask(engine, call, [feeds for _, feeds in rounds], frozen=is_frozen)
    except EngineCrash as crash:
        raise Finding(f"{engine}: {crash}\n{_text_of(call)}") from crash
    for (kind, _), answer in zip(rounds, answers, strict=True):
        problem = _problem(engine, call, kind, answer)
        if problem:
            raise Finding(f"{engine}, {kind}: {problem}\n{_text_of(call)}")
    return answers[0].word


def _problem(engine: str, call: EngineCall, kind: str, answer: Answer) -> str:
    known = documented(engine).get(call.op, frozenset())
    if answer.word == "raised" or (answer.word == "differs" and not known & _kinds_in(call, kind)):
        return f"{answer.word}: {answer.detail}"
    return ""


def _kinds_in(call: EngineCall, kind: str) -> frozenset[str]:
    """The kinds of numbers that may be in a call: one that has some of its own may have any."""
    return frozenset(kind.split(", ")) if is_ordinary(call) else frozenset(KINDS)


def _text_of(call: EngineCall) -> str:
    """The node that is called, and what it is given."""
    node = opkernel.opdef.summarize_node_def(call.graph_def.node[-1])
    given = [
        f"{name}: {value.dtype}{list(value.shape)} {value.ravel()[:8]}"
        for name, value in call.feeds.items()
    ]
    return "\n".join([node, *given])


def _all_rounds(
    engine: str, call: EngineCall
) -> Iterator[tuple[EngineCall, list[tuple[str, Any]]]]:
    """A call in all shapes, with all attrs and with special numbers."""
    changed = [call, *(one for _, one in with_attrs(call))]
    for one, shape in itertools.product(changed, SHAPES):
        made = with_shapes(one, shape)
        if made is not None:
            yield made, [("plain", made.feeds)]
    for one in (call, pointwise(engine, call)):
        yield one, [("plain", one.feeds), *special_feeds(engine, one)]


def main(names: list[str]) -> int:
    """Run everything; the number of findings is the status."""
    words: Counter[str] = Counter()
    for engine in names or _engines():
        for call in itertools.chain(_taken(engine), recorded_calls()):
            if refusal(engine, call):
                continue
            for made, rounds in _all_rounds(engine, call):
                for is_frozen in (False, True) if len(made.feeds) > 1 else (False,):
                    try:
                        words[_checked(engine, made, rounds, is_frozen=is_frozen)] += 1
                    except Finding as finding:
                        words["finding"] += 1
                        print(finding, end="\n\n", flush=True)
    print(dict(words))
    return min(words["finding"], 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
