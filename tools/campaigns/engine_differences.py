"""Where engines compute other values than the kernels, by op and by kind of number: the table of docs/engines.md, and what is so."""

import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from tools.campaigns.engine_calls import EngineCall, special_feeds
from tools.campaigns.engine_child import EngineChild

__all__ = ["KINDS", "documented", "is_ordinary", "measured"]

_PAGE = Path(__file__).parents[2] / "docs" / "engines.md"
KINDS = ("NaN", "infinity", "subnormal", "extreme integers", "beyond integers")
"""Kinds of numbers that the table speaks of."""

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
