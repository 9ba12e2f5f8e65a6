"""Texts that nest 100,000 deep: whatever parses text ends with an error that says so, and not with Python's stack."""

from __future__ import annotations

import ast
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner
from tests.architecture.source_code import modules

import opkernel
from opkernel import Graph, TensorSpec, raw_ops
from opkernel.checkpoint import get_checkpoint_state
from opkernel.cli.commands import commands
from opkernel.data import Dataset
from opkernel.distributed import ClusterSpec, predict
from opkernel.distributed.batches.text_rows import text_rows
from opkernel.errors import OpError
from opkernel.opdef.compat.op_history import parse_op_history
from opkernel.opdef.text.text_proto import parse_multiline
from opkernel.ops.data.iterator_state import IteratorState
from opkernel.ops.data.windows import WindowElements
from opkernel.plugins.discovery import plugins_in_folder
from opkernel.proto import OpList, VariantTensorDataProto
from opkernel.serving.json_text import parsed

DEPTH = 100_000
JSON = ["[" * DEPTH, "[" * DEPTH + "]" * DEPTH, '{"a":' * DEPTH + "1" + "}" * DEPTH]
JSON += [f'{{"cluster": {JSON[1]}}}', f'{{"features": {JSON[2]}}}', f'{{"instances": {JSON[1]}}}']
TOML = ["a = " + "[" * DEPTH, "a = " + "[" * DEPTH + "]" * DEPTH, "a = " + "{a=" * DEPTH]
PYTHON = ["[" * DEPTH, "(" * DEPTH + ")" * DEPTH, "-" * DEPTH + "1", "1" + "+1" * DEPTH]
PYTHON += ["[{'a': " * DEPTH, "x" + ".x" * DEPTH, "x" + "()" * DEPTH]


def proto(opening: str) -> list[str]:
    return [opening * DEPTH, opening * DEPTH + "}" * (opening.count("{") * DEPTH)]


GRAPHS = [
    *proto("library { function { "),
    "node { name: 'a' op: 'A' attr { key: 'f' value { "
    + "func { attr { key: 'f' value { " * DEPTH
    + "} " * (3 * DEPTH + 3),
]
OPS = [
    *proto("op { "),
    f"op {{ name: 'A' output_arg {{ name: 'x' experimental_full_type {{ {'args { ' * DEPTH} }}",
]


def in_file(name: str, read: Callable[[Path], object]) -> Callable[[str, Path], object]:
    """What a text leads to in a file of that name."""

    def parse(text: str, folder: Path) -> object:
        (folder / name).write_text(text)
        return read(folder)

    return parse


def command(*arguments: str, file: str = "") -> Callable[[str, Path], object]:
    """What a text leads to on the command line: in an argument, or in the file of that name."""

    def run(text: str, folder: Path) -> object:
        with Graph().as_default() as graph:
            raw_ops.Neg(x=opkernel.placeholder(np.float32, [None], name="x"), name="y")
        opkernel.save_graph(graph, folder / "model.pb")
        if file:
            (folder / file).write_text(text)
        given = [one.format(text=text if not file else "", folder=folder) for one in arguments]
        done = CliRunner().invoke(commands, given, standalone_mode=False)
        if done.exception is not None:
            raise done.exception
        return done

    return run


def mapped(folder: Path) -> Iterable[object]:
    with Graph().as_default() as graph:
        raw_ops.Neg(x=opkernel.placeholder(np.float32, [None], name="x"))
    model, data = folder.parent / "model.pb", folder.parent / "data.npz"
    opkernel.save_graph(graph, model)
    if not data.exists():  # else it is another input
        np.savez(data, x=np.ones(3, np.float32))
    return predict(model, data, output=folder)


def lines_of_parts(text: str, folder: Path) -> object:
    """A line of `parts.jsonl` that is no line of ours is none."""
    for _ in mapped(folder / "out"):
        pass
    with open(folder / "out" / "parts.jsonl", "a", encoding="utf-8") as file:
        file.write(f"{text}\n")
    return mapped(folder / "out")


def broken(folder: Path) -> object:
    (plugin,) = plugins_in_folder(folder)
    raise plugin.error or AssertionError("the plugin is not broken")


def decoded(text: str, _: Path) -> object:
    return raw_ops.DecodeProtoV2(
        bytes=[text.encode()],
        message_type="tensorflow.GraphDef",
        field_names=[],
        output_types=[],
        descriptor_source="local://",
        message_format="text",
    )


def asserted(text: str, _: Path) -> object:
    dataset = Dataset.range(1)
    return raw_ops.AssertPrevDataset(
        input_dataset=dataset.variant_tensor,
        transformations=[text.encode()],
        output_types=[opkernel.int64],
        output_shapes=[[]],
    )


def of_variant(kind: Any) -> Callable[[str, Path], object]:
    """What a text leads to that describes a value in a file."""
    return lambda text, _: kind.from_proto(VariantTensorDataProto(metadata=text.encode()))


def rows_read(folder: Path) -> object:
    return text_rows(str(folder / "rows.jsonl"), {"x": TensorSpec([None])}, {"x"}).read()


def in_keras_file(text: str, folder: Path) -> object:
    with zipfile.ZipFile(folder / "model.keras", "w") as archive:
        archive.writestr("config.json", text)
        archive.writestr("model.weights.h5", "")
    return opkernel.load_graph(folder / "model.keras")


RUN = ["run", "{folder}/model.pb", "--fetch", "y:0"]
PARSERS: dict[str, list[tuple[list[str], Callable[[str, Path], object]]]] = {
    "opkernel.distributed.cluster.cluster_spec": [
        (JSON, lambda text, _: ClusterSpec.from_tf_config(text)),
        (
            JSON,
            in_file("cluster.json", lambda folder: ClusterSpec.from_file(folder / "cluster.json")),
        ),
    ],
    "opkernel.distributed.batches.parts": [
        (JSON, in_file("manifest.json", mapped)),
        (JSON, lines_of_parts),
    ],
    "opkernel.distributed.batches.text_rows": [(JSON, in_file("rows.jsonl", rows_read))],
    "opkernel.graph.io.tfjs_model": [
        (JSON, in_file("model.json", lambda folder: opkernel.load(folder / "model.json"))),
    ],
    "opkernel.graph.io.keras_files": [(JSON, in_keras_file)],
    "opkernel.cli.measured_times": [
        (
            JSON,
            command(
                *("show", "{folder}/model.pb", "--html", "{folder}/page.html"),
                *("--profile", "{folder}/profile.json"),
                file="profile.json",
            ),
        )
    ],
    "opkernel.cli.feeds": [(JSON[:3], command(*RUN, "--input", "x={text}"))],
    "opkernel.cli.saved_model_inputs": [
        (PYTHON, command(*RUN, "--input_exprs", "x={text}")),
        (PYTHON, command(*RUN, "--input_examples", "x={text}")),
    ],
    "opkernel.serving.json_text": [(JSON[:2] + JSON[5:], lambda text, _: parsed(text.encode()))],
    "opkernel.ops.parsing.example": [
        (JSON, lambda text, _: raw_ops.DecodeJSONExample(json_examples=[text.encode()]))
    ],
    "opkernel.ops.parsing.protos": [(GRAPHS, decoded)],
    "opkernel.ops.data.assertions_and_services": [
        (proto("attr { key: 'f' value { func { "), asserted)
    ],
    "opkernel.ops.data.loaded_datasets": [(GRAPHS, in_file("snapshot.metadata", Dataset.load))],
    "opkernel.ops.data.iterator_state": [(JSON, of_variant(IteratorState))],
    "opkernel.ops.data.windows": [(JSON, of_variant(WindowElements))],
    "opkernel.plugins.discovery": [(TOML, in_file("plugin.toml", broken))],
    "opkernel.cli.check": [
        (TOML, in_file("pyproject.toml", lambda _: command("check")("", Path())))
    ],
    "opkernel.checkpoint.checkpoint_state": [
        (GRAPHS + proto("a { "), in_file("checkpoint", get_checkpoint_state))
    ],
    "opkernel.graph.io.message_files": [
        (GRAPHS, in_file("graph.pbtxt", lambda folder: opkernel.load_graph(folder / "graph.pbtxt")))
    ],
    "opkernel.opdef.text.text_proto": [(OPS, lambda text, _: parse_multiline(text, OpList()))],
    "opkernel.opdef.compat.op_history": [
        (OPS, lambda text, _: next(iter(parse_op_history(text.encode(), "h").revisions())).op_def)
    ],
}
"""What parses texts, by module."""
OTHERS = {
    "opkernel.cli.exported_ops": "its argument is ours",
    "opkernel.cli.op_sources": "the answer of that script",
    "opkernel.decompile.definitions": "text that it wrote itself",
    "opkernel.endpoints.table": "a file of the package",
    "opkernel.escaping": "the function that others call",
    "opkernel.ops.api_defs": "a file of the package",
}
FUNCTIONS = {
    *("json.load", "json.loads", "json_value", "tomllib.loads", "tomllib.load", "_DECODER.decode"),
    *(
        "text_format.Parse",
        "text_format.Merge",
        "json_format.Parse",
        "ast.parse",
        "ast.literal_eval",
    ),
}
"""What parses text that nests."""


def test_all_that_parses_text_is_listed() -> None:
    found = {
        name
        for name, module in modules().items()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and dotted(node.func) in FUNCTIONS
    }
    assert found == PARSERS.keys() | OTHERS.keys()


def dotted(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return f"{getattr(function.value, 'id', '')}.{function.attr}"
    return getattr(function, "id", "")


def cases() -> Iterator[object]:
    for name, parsers in PARSERS.items():
        for texts, parse in parsers:
            for text in texts if parse is not lines_of_parts else ():
                yield pytest.param(parse, text, id=f"{name}-{text[:12]}-{text[-4:]}")


@pytest.mark.parametrize(("parse", "text"), [*cases()])
def test_depth_is_an_error(
    parse: Callable[[str, Path], object],
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((OpError, click.ClickException)) as caught:
        parse(text, tmp_path)
    assert len(str(caught.value)) < 10_000 or "--" in str(caught.value)


@pytest.mark.parametrize("text", JSON, ids=lambda text: text[:12])
def test_a_deep_line_of_parts_is_passed_over(text: str, tmp_path: Path) -> None:
    lines_of_parts(text, tmp_path)


def test_a_text_that_python_can_hold_is_taken() -> None:
    text = "[" * 50 + "1" + "]" * 50
    assert opkernel.escaping.json_value(text) == json.loads(text)
