"""The data of a page: programs, their nodes and the tree of their scopes, as small as JSON gets.

The page's scripts read the data and draw what is in view. Text that repeats stands once in `texts`, and the facts
that nodes share stand once in `facts`; numbers refer to both.
"""

from __future__ import annotations

import base64
import gzip
import math
from collections.abc import Mapping, Sequence
from typing import Any

from opkernel.drawing.labels import box_kind
from opkernel.drawing.nodes import Node
from opkernel.drawing.scopes import Item, Leaf, scope_tree
from opkernel.escaping import json_text, terminal_text
from opkernel.graph.core.structural_ops import MERGE_OPS, NEXT_ITERATION_OPS
from opkernel.records import dataclass

_MOST_CHILDREN = 240
_LONGEST = 4000


@dataclass(slots=True, eq=False)
class DrawnProgram:
    """A graph, a signature or a function as a page shows it.

    Attributes:
        label: its name for people.
        nodes: its nodes.
        kind: `graph`, `signature` or `function`.
        function: its name in the library, if it is a function.
        note: a further fact for the line above the drawing.
    """

    label: str
    nodes: Sequence[Node]
    kind: str = "graph"
    function: str = ""
    note: str = ""


@dataclass(slots=True, eq=False)
class DrawnCluster:
    """A cluster that an engine computed in a step.

    Attributes:
        name: its name.
        engine: the name of the engine.
        seconds: how long the engine took.
        parts: how long its operations took, by the names of nodes; 0 where the engine does not measure them.
    """

    name: str
    engine: str
    seconds: float
    parts: Mapping[str, float]


class _Texts:
    """Numbers for texts, or for other values that may repeat."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}

    def number(self, value: Any) -> int:
        """The number of a value: the same for equal ones."""
        return self._numbers.setdefault(value, len(self._numbers))

    @property
    def values(self) -> list[Any]:
        """The values, in the order of their numbers."""
        return [*self._numbers]


def page_data(
    programs: Sequence[DrawnProgram], clusters: Sequence[DrawnCluster] = ()
) -> dict[str, Any]:
    """The data of a page: programs in the order of their links, the first one is shown first; and the clusters of a step."""
    texts, facts = _Texts(), _Texts()
    numbers = {one.function: at for at, one in enumerate(programs) if one.function}
    found = [_program(one, numbers, texts, facts) for one in programs]
    data = {"programs": found, "facts": facts.values, "texts": texts.values}
    return {**data, "clusters": _clusters(clusters, programs)}


def _clusters(
    clusters: Sequence[DrawnCluster], programs: Sequence[DrawnProgram]
) -> list[dict[str, Any]]:
    """Clusters with the names and seconds of their operations, and the program and node that draw each, if any do."""
    wanted = {name for one in clusters for name in one.parts}
    places: dict[str, list[int]] = {}
    for number, program in enumerate(programs if wanted else ()):
        for at, node in enumerate(program.nodes):
            if node.name in wanted:
                places.setdefault(node.name, [number, at])
    return [
        {
            "label": _clean(f"{one.engine} {one.name}"),
            "seconds": one.seconds if math.isfinite(one.seconds) else 0.0,
            "parts": [
                [_clean(name), took if math.isfinite(took) else 0.0, *places.get(name, ())]
                for name, took in sorted(one.parts.items(), key=lambda part: -part[1])
            ],
        }
        for one in clusters
    ]


def packed(data: Mapping[str, Any]) -> str:
    """Data as gzipped JSON in Base64: text of a model cannot be read as HTML or script."""
    return base64.b64encode(gzip.compress(json_text(data).encode(), 9, mtime=0)).decode()


def _program(
    program: DrawnProgram, numbers: Mapping[str, int], texts: _Texts, facts: _Texts
) -> dict[str, Any]:
    tree = scope_tree(program.nodes, _MOST_CHILDREN)
    places = {node.name: at for at, node in enumerate(program.nodes)}
    return {
        "label": _clean(program.label),
        "kind": program.kind,
        "note": program.note,
        "names": [_clean(node.name) for node in program.nodes],
        "factsOf": [facts.number(_facts(node, numbers, texts)) for node in program.nodes],
        "inputs": [_inputs(node, places, texts) for node in program.nodes],
        "folded": {
            str(at): [[places[name], texts.number(shape)] for name, shape in node.folded]
            for at, node in enumerate(program.nodes)
            if node.folded
        },
        "seconds": {
            str(at): node.seconds
            for at, node in enumerate(program.nodes)
            if node.seconds is not None and math.isfinite(node.seconds)
        },
        "tree": [_item(child, places) for child in tree.children],
    }


def _facts(node: Node, numbers: Mapping[str, int], texts: _Texts) -> tuple[Any, ...]:
    """The facts of a node that others may share: op, kind, kernel, outputs, details, functions, end of a back edge."""
    end = 1 if node.op in NEXT_ITERATION_OPS else 2 if node.op in MERGE_OPS else 0
    return (
        texts.number(_clean(node.op)),
        texts.number(box_kind(node)),
        texts.number(node.kernel),
        tuple(texts.number(_clean(text)) for text in node.outputs),
        tuple(texts.number(_clean(text)) for text in node.details),
        tuple(numbers[name] for name in node.functions if name in numbers),
        end,
    )


def _inputs(node: Node, places: Mapping[str, int], texts: _Texts) -> list[int]:
    """Pairs: the number of the node that an input is of, and what stands behind its name; `^` for a control edge."""
    found: list[int] = []
    for source, text in node.inputs:
        if source in places:
            end = "^" if text.startswith("^") else text.removeprefix(source)
            found += [places[source], texts.number(_clean(end))]
    return found


def _item(item: Item, places: Mapping[str, int]) -> Any:
    """A node: its number, or with a label that is not the end of its name. A scope: its label, name and children."""
    if isinstance(item, Leaf):
        place = places[item.node.name]
        is_usual = item.label == item.node.name.rpartition("/")[2]
        return place if is_usual else [place, _clean(item.label)]
    return [
        _clean(item.label),
        int(item.is_part),
        *[_item(child, places) for child in item.children],
    ]


def _clean(text: str) -> str:
    """Text without characters that steer or hide; the middle of a very long one is left out."""
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]}…{text[-_LONGEST // 2 :]}"
    return terminal_text(text, keep="")
