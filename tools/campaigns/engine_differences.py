"""Where engines compute other values than the kernels, by op and by kind of number: the table of docs/engines.md, and what is so."""

import functools
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np
from tools.campaigns.engine_calls import (
    KINDS,
    EngineCall,
    enlarged,
    in_float32,
    pointwise,
    sampled_calls,
    special_feeds,
)
from tools.campaigns.engine_child import EngineChild

from opkernel.engines import engine_named
from opkernel.errors import OpError

__all__ = ["documented", "is_ordinary", "measured", "refusal", "representatives"]

_CALLS = {"Cast": 99}
"""Of these ops, so many calls are looked at: one for each pair of types."""
_PAGE = Path(__file__).parents[2] / "docs" / "engines.md"
_ROW = re.compile(r"^\| (?P<ops>.+?) \| (?P<kinds>.+?) \|", re.MULTILINE)


@functools.cache
def documented(engine: str) -> Mapping[str, frozenset[str]]:
    """For each op in the table of an engine, the kinds of numbers for which it differs."""
    text = _PAGE.read_text(encoding="utf-8")
    _, _, after = text.partition(f"### {engine}\n")
    table, _, _ = after.partition("\n##")
    found: dict[str, set[str]] = defaultdict(set)
    for row in _ROW.finditer(table):
        kinds = {kind for kind in KINDS if kind in row["kinds"].split(", ")}
        for op in row["ops"].replace("`", "").split(", "):
            if kinds:
                found[op] |= kinds
    return {op: frozenset(kinds) for op, kinds in found.items()}


def representatives(engine: str, ops: Collection[str]) -> Iterator[EngineCall]:
    """Some calls of each of some ops that an engine takes, in shapes that are not too small."""
    counts: Counter[str] = Counter()
    own = [call for call in sampled_calls() if call.op in ops]
    for call in [*own, *map(in_float32, own)]:
        if call is None or counts[call.op] >= _CALLS.get(call.op, 2) or not is_ordinary(call):
            continue
        if refusal(engine, call):
            continue
        counts[call.op] += 1
        for larger in (pointwise, enlarged)[counts[call.op] - 1 :]:
            with suppress(OpError):
                made = larger(engine, call)
                made.graph()
                call = made
                break
        yield call


def refusal(engine: str, call: EngineCall) -> str:
    """Why an engine does not take a call; empty where it does."""
    try:
        return engine_named(engine).refusal(call.graph()[1])
    except OpError as error:
        return str(error)


def measured(
    child: EngineChild, engine: str, calls: Iterable[EngineCall]
) -> dict[str, dict[str, str]]:
    """For each op, the kinds of numbers for which some call differs, with an example.

    Raises:
        EngineCrash: a call ends the process.
    """
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for call in calls:
        if not is_ordinary(call):
            continue
        kinds, feeds = ["plain"], [call.feeds]
        for kind, one in special_feeds(engine, call):
            kinds.append(kind)
            feeds.append(one)
        for kind, answer in zip(kinds, child.ask(engine, call, feeds), strict=True):
            if answer.word in ("differs", "raised"):
                found[call.op].setdefault(kind, f"{answer.word}: {answer.detail}")
    return found


def is_ordinary(call: EngineCall) -> bool:
    """Whether a call has no special numbers of its own."""
    floats = [one.astype(np.float64) for one in call.feeds.values() if one.dtype.kind in "fV"]
    return all(bool(np.isfinite(one).all() and (np.abs(one) < 1e9).all()) for one in floats)
