"""The clusters of a model by engine, with times; why nodes stay outside: `opkernel explain MODEL`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median
from time import perf_counter
from typing import Any

from opkernel.cli.feeds import random_feeds
from opkernel.cli.limits import progress
from opkernel.cli.model import Model
from opkernel.cli.model_program import ModelProgram, open_program
from opkernel.cli.output import WrongUse, counted, echo, one_line, print_table, print_text
from opkernel.cli.program_graph import program_text
from opkernel.errors import DeadlineExceededError, OpError, UnimplementedError
from opkernel.runtime.adaptive.adaptive import Finding
from opkernel.runtime.engines.engine import clusters_of, engine_named, registered_engines

_WARM, _STEPS = 8, 7
"""The steps that are not timed, in which a session makes programs and compiles clusters, and those that are."""


def cluster_facts(model: Model, names: Sequence[str]) -> list[dict[str, Any]]:
    """What engines make of the program of a model, and what steps take with each and without any.

    Args:
        model: The model.
        names: The engines; all that are installed if empty.
    """
    with open_program(model, jit="off") as opened:
        plain = {"engine": "off", **opened.facts(), **_timed(opened)}
        part = opened.part
    found = [plain]
    for name in names or registered_engines():
        engine = engine_named(name)
        try:
            engine.check_installed()
        except UnimplementedError as error:
            found.append({"engine": name, "error": error.message})
            continue
        graph = part.graph or opened.graph
        with progress(f"Compiling {model.name}"):
            made = clusters_of(graph, part.fetches, part.feeds, part.targets, engine=engine)
        clusters = [{"name": one.name, "nodes": list(one.nodes)} for one in made.clusters]
        facts = {"clusters": clusters, "outside": made.outside, "left": made.left}
        if clusters:
            with open_program(model, jit=f"{name}!") as with_engine:
                facts |= _timed(with_engine)
        found.append({"engine": name, **facts})
    return found


def _timed(opened: ModelProgram) -> dict[str, Any]:
    """The median time of a step on drawn values, and what the session found out; the error where there is one."""
    times = []
    session = opened.session
    try:
        feeds = random_feeds(opened.interface, opened.fetches, {})
        for _ in range(_WARM + _STEPS):
            start = perf_counter()
            session.run(opened.fetches, feeds)
            times.append((perf_counter() - start) * 1e3)
        return {
            "milliseconds": median(times[_WARM:]),
            "report": [str(one) for one in session.report() if not _is_known(one)],
        }
    except DeadlineExceededError:
        raise  # no time is left for what follows
    except (OpError, WrongUse) as error:
        return {"not_run": str(error).partition("\n")[0]}


def _is_known(finding: Finding) -> bool:
    """Whether a finding says no more than that variables are constants, as `program_text` does."""
    return finding.strategy == "variables" and not finding.error


def print_clusters(facts: Sequence[dict[str, Any]]) -> None:
    """Print it for people."""
    rows = [
        (
            _name(one),
            len(one["clusters"]) if "clusters" in one else "",
            sum(len(c["nodes"]) for c in one.get("clusters", ())) or "",
            one.get("left", ""),
            f"{one['milliseconds']:.3f}" if "milliseconds" in one else "",
        )
        for one in facts
    ]
    columns = ("engine", "clusters", "nodes in clusters", "left to the CPU", "ms a step")
    print_table("Engines", columns, rows, columns[1:])
    print_text(one_line(program_text(facts[0])))
    for one in facts:
        for told in (one.get("error"), one.get("not_run"), *one.get("report", ())):
            if told:
                print_text(one_line(f"{_name(one)}: {told}"))
        if "clusters" in one:
            _print_engine(one)


def _name(one: dict[str, Any]) -> str:
    return "no engine" if one["engine"] == "off" else str(one["engine"])


def _print_engine(one: dict[str, Any]) -> None:
    engine = one["engine"]
    if one["clusters"]:
        echo()
        rows = [
            (c["name"], len(c["nodes"]), c["nodes"][0], c["nodes"][-1]) for c in one["clusters"]
        ]
        columns = ("cluster", "nodes", "first", "last")
        print_table(f"Clusters for {engine}", columns, rows, ("nodes",))
    if one["outside"]:
        echo()
        print_text(f"Outside, with {engine}:", bold=True)
        for why, count in Counter(one["outside"].values()).most_common():
            example = next(name for name, reason in one["outside"].items() if reason == why)
            print_text(one_line(f"  {counted(count, 'node')}: {why} ({example})"))
