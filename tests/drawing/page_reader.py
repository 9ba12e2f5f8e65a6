"""What a page says: the data that its scripts draw."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterator
from typing import Any


class ReadProgram:
    """A program of a page.

    Attributes:
        label: its name for people.
        nodes: the facts of each node, by its name.
        boxes: the names of the nodes with boxes of their own.
        scopes: the paths of all scopes.
    """

    def __init__(self, data: dict[str, Any], page: dict[str, Any]) -> None:
        texts = page["texts"]
        self.label: str = data["label"]
        self.kind: str = data["kind"]
        self.note: str = data["note"]
        self.names: list[str] = data["names"]
        self.tree: list[Any] = data["tree"]
        self.nodes: dict[str, dict[str, Any]] = {}
        for at, name in enumerate(self.names):
            op, kind, kernel, outputs, details, functions, _ = page["facts"][data["factsOf"][at]]
            pairs = data["inputs"][at]
            self.nodes[name] = {
                "op": texts[op],
                "kind": texts[kind],
                "kernel": texts[kernel],
                "outputs": [texts[one] for one in outputs],
                "details": [texts[one] for one in details],
                "functions": [page["programs"][one]["label"] for one in functions],
                "inputs": [
                    (self.names[node], texts[end])
                    for node, end in zip(pairs[::2], pairs[1::2], strict=True)
                ],
                "folded": {
                    self.names[node]: texts[shape]
                    for node, shape in data["folded"].get(str(at), [])
                },
                "seconds": data["seconds"].get(str(at)),
            }
        self.boxes = {self.names[node] for node in _leaves(self.tree)}
        self.scopes = {*_paths(self.tree, "")}

    def with_op(self, op: str) -> list[str]:
        """The names of the nodes of an op."""
        return [name for name, node in self.nodes.items() if node["op"] == op]


def read_page(page: str) -> list[ReadProgram]:
    """The programs of a page, the one that it opens on first."""
    data = _data(page)
    return [ReadProgram(one, data) for one in data["programs"]]


def _data(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/gzip" id="data">([A-Za-z0-9+/=]*)</script>', page)
    assert found is not None
    data: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(found[1])))
    return data


def read_clusters(page: str) -> list[dict[str, Any]]:
    """The clusters of a page; of each operation its name, its seconds, and the label of the program that draws it and the node."""
    data = _data(page)
    return [
        {
            "label": one["label"],
            "seconds": one["seconds"],
            "parts": [
                (name, took, *_drawn(data["programs"], *place))
                for name, took, *place in one["parts"]
            ],
        }
        for one in data["clusters"]
    ]


def _drawn(programs: list[dict[str, Any]], *place: int) -> tuple[str, ...]:
    if not place:
        return ()
    program = programs[place[0]]
    return program["label"], program["names"][place[1]]


def _leaves(items: list[Any]) -> Iterator[int]:
    for item in items:
        if isinstance(item, int):
            yield item
        elif isinstance(item[0], int):
            yield item[0]
        else:
            yield from _leaves(item[2:])


def _paths(items: list[Any], around: str) -> Iterator[str]:
    for item in items:
        if isinstance(item, list) and isinstance(item[0], str):
            path = f"{around}/{item[0]}".lstrip("/")
            yield path
            yield from _paths(item[2:], path)
