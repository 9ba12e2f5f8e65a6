"""Where engines compute other values than the kernels, by op and by kind of number: the table of docs/engines.md, and what is so.

python -m tools.campaigns.engine_differences ENGINE    what is so, with an example of each kind of number
"""

import functools
import itertools
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from tools.campaigns.engine_calls import (
    KINDS,
    SUBNORMAL_BY_INFINITY,
    EngineCall,
    enlarged,
    in_float32,
    pointwise,
    sampled_calls,
    special_feeds,
)
from tools.campaigns.engine_child import EngineChild

from opkernel.engines import engine_named
from opkernel.engines.openvino.op_rule import rules
from opkernel.errors import OpError
from opkernel.ops.catalogue import MODULE_OF_OP
from opkernel.xla.op_registry import global_xla_op_registry

__all__ = ["documented", "engine_ops", "is_ordinary", "measured", "refusal", "representatives"]

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


def representatives(engine: str, ops: Collection[str]) -> Iterator[list[EngineCall]]:
    """Calls of each of some ops that an engine takes, each in larger shapes first.

    These are two calls, on float32 and another; of casts one for each pair of types. Of the ops that OpenVINO's table
    lists they are all.
    """
    taken: dict[str, list[EngineCall]] = defaultdict(list)
    for call in itertools.chain.from_iterable((one, in_float32(one)) for one in sampled_calls()):
        if call and call.op in ops and is_ordinary(call) and not refusal(engine, call):
            taken[call.op].append(call)
    for op, calls in taken.items():
        calls.sort(key=_is_on_float32, reverse=True)
        for call in (
            calls if op == "Cast" or _is_listed(engine, op) else [*calls[:1], *calls[:0:-1][:1]]
        ):
            yield _in_shapes(engine, call, (pointwise, enlarged)[call is not calls[0] :])


def _is_listed(engine: str, op: str) -> bool:
    return engine == "openvino" and op in documented(engine)


def _in_shapes(
    engine: str, call: EngineCall, ways: Sequence[Callable[[str, EngineCall], EngineCall]]
) -> list[EngineCall]:
    """A call in larger shapes, and as it is; a larger matrix would be singular."""
    if MODULE_OF_OP.get(call.op, "").startswith("linalg."):
        return [call]
    found = []
    for way in ways:
        with suppress(OpError):
            made = way(engine, call)
            made.graph()
            found.append(made)
    return [*found, call]


def _is_on_float32(call: EngineCall) -> bool:
    return any(value.dtype == np.float32 for value in call.feeds.values())


def refusal(engine: str, call: EngineCall) -> str:
    """Why an engine does not take a call; empty where it does."""
    try:
        return engine_named(engine).refusal(call.graph()[1])
    except OpError as error:
        return str(error)


def measured(
    child: EngineChild, engine: str, calls: Iterable[list[EngineCall]]
) -> dict[str, dict[str, str]]:
    """For each op, the kinds of numbers for which some call differs, with an example.

    Raises:
        EngineCrash: a call ends the process.
    """
    found: dict[str, dict[str, str]] = defaultdict(dict)
    # OpenVINO takes weights that are constant.
    for in_shapes, frozen in itertools.product(calls, {engine == "openvino", False}):
        for call in filter(is_ordinary, in_shapes):
            rounds = [("plain", call.feeds), *special_feeds(engine, call)]
            answers = child.ask(engine, call, [feeds for _, feeds in rounds], frozen=frozen)
            if answers[0].word == "refused":
                continue
            for (kind, _), answer in zip(rounds, answers, strict=True):
                if answer.word in ("differs", "raised"):
                    found[call.op].setdefault(kind, f"{answer.word}: {answer.detail}")
            if not _is_listed(engine, call.op):
                break
    return _by_kind(found)


def _by_kind(found: Mapping[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """What differs only for a subnormal number beside infinity, differs for subnormal numbers."""
    for kinds in found.values():
        beside = kinds.pop(SUBNORMAL_BY_INFINITY, "")
        if beside and "infinity" not in kinds:
            kinds.setdefault("subnormal", beside)
    return {op: kinds for op, kinds in found.items() if kinds}


def is_ordinary(call: EngineCall) -> bool:
    """Whether a call has no special numbers of its own."""
    floats = [one.astype(np.float64) for one in call.feeds.values() if one.dtype.kind in "fV"]
    return all(bool(np.isfinite(one).all() and (np.abs(one) < 1e9).all()) for one in floats)


def engine_ops(engine: str) -> set[str]:
    """The ops that an engine has a rule for."""
    if engine == "openvino":
        return set(rules())
    return set(global_xla_op_registry().all_registered_ops())


def main(engine: str) -> None:
    """Print what differs, in the order of the table's rows."""
    child = EngineChild()
    found = measured(child, engine, representatives(engine, engine_ops(engine)))
    child.close()
    for op, kinds in sorted(found.items(), key=lambda one: (sorted(one[1]), one[0])):
        print(f"| `{op}` | {', '.join(sorted(kinds))} |", *kinds.values(), sep="\n    ")


if __name__ == "__main__":
    main(sys.argv[1])
