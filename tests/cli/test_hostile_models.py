"""No text of a model, or of a library of ops, becomes code of a program that is written of it."""

import ast
import builtins
import inspect
import keyword
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from tests.cli.hostile_models import (
    ANY_TEXT,
    CODE,
    FEEDS,
    FETCHES,
    FUNCTION_NAMES,
    HOSTILE,
    NAMES,
    NODE_NAMES,
    imported,
    model,
    rename_functions,
    rename_nodes,
)

import opkernel
from opkernel import Graph, Session, Tensor
from opkernel.decompile import Program, decompile
from opkernel.decompile.functions import plans
from opkernel.errors import OpError
from opkernel.graph import is_valid_node_name
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext, register_kernel
from opkernel.opdef import OpRegistrationData, global_op_registry, stub_text, unchanged_shape
from opkernel.ops.loader import all_op_names
from opkernel.proto import AttrValue, GraphDef, OpDef
from opkernel.runtime import CompiledPlan
from opkernel.types import DataType

both_modes = pytest.mark.parametrize("with_numpy_only", [False, True])

OPTIONS = [*inspect.signature(np.savez).parameters]
"""What the function that writes weights calls its own parameters."""

NOT_OF_PROGRAMS = {"__import__", "mkdir", "os", "touched"}


def tensors(graph: Graph) -> tuple[list[Tensor], list[Tensor]]:
    """The placeholders, and what is fetched, whatever the nodes are called."""
    ops = graph.get_operations()
    return [op.outputs[0] for op in ops if op.type == "Placeholder"], [
        next(op for op in ops if op.type == "Exit").outputs[0],
        next(op for op in ops if op.type == "Switch" and op.inputs[0].op.type == "Exit").outputs[1],
        next(op for op in ops if op.type == "StatelessWhile").outputs[1],
    ]


def names_in(tree: ast.AST) -> set[str]:
    """All names that a program reads, sets, calls or imports."""
    found: set[str] = set()
    for one in ast.walk(tree):
        for field in ("id", "attr", "name", "arg", "module"):
            value = getattr(one, field, None)
            if isinstance(value, str):
                found.update(value.split("."))
    return found


def run(source: str, weights: dict[str, Any], *arguments: Any) -> Any:
    """What a program computes in this process."""
    namespace: dict[str, Any] = {"__name__": "program", "WEIGHTS": weights}
    exec(re.sub("^WEIGHTS = .*", "", source, flags=re.MULTILINE), namespace)
    return namespace["model"](*arguments)


@pytest.fixture(autouse=True)
def nothing_is_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    yield
    assert not (tmp_path / "touched").exists()


def compiled(made: GraphDef, with_numpy_only: bool, title: str = "A model") -> Program:
    feeds, fetches = tensors(imported(made))
    return decompile(feeds, fetches, title, with_numpy_only=with_numpy_only)


def check_values(program: Program) -> None:
    """Check that a program computes what the model with names of its own gives."""
    with Session(imported(model()), optimize=False) as session:
        wanted = session.run(FETCHES, {f"{name}:0": value for name, value in FEEDS.items()})
    found = run(program.source, program.weights, *FEEDS.values())
    for one, value in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, value, rtol=1e-6)


def check_harmless(program: Program) -> None:
    """Check that a program has no name of the code that stands in the model, and works."""
    assert not names_in(ast.parse(program.source)) & NOT_OF_PROGRAMS
    check_values(program)


@both_modes
@pytest.mark.parametrize("text", HOSTILE)
def test_text_of_a_model_is_no_code(text: str, with_numpy_only: bool) -> None:
    made = model()
    for put in ANY_TEXT:
        put(made, text)
    check_harmless(compiled(made, with_numpy_only, title=text))


@pytest.mark.parametrize("text", HOSTILE)
def test_text_in_names_of_nodes_is_refused_or_no_code(text: str) -> None:
    for put in NAMES:
        made = model()
        put(made, text)
        try:
            program = compiled(made, with_numpy_only=False)
        except OpError:
            assert not is_valid_node_name(text)
        else:
            check_harmless(program)


@both_modes
def test_a_model_may_have_the_names_of_its_plans_and_program(with_numpy_only: bool) -> None:
    feeds, fetches = tensors(imported(model()))
    found = plans(feeds, fetches, with_numpy_only=with_numpy_only)
    texts = [
        compiled(model(), with_numpy_only).source,
        *(CompiledPlan(one.tree).source for one in found),
    ]
    own = set().union(*(names_in(ast.parse(text)) for text in texts))
    assert own >= {"plan", "step", "np", "truth", "scalar_of", "check_alive", "results"}
    for names in batched(sorted(own.difference(all_op_names())), len(FUNCTION_NAMES)):
        made = model()
        rename_functions(made, dict(zip(FUNCTION_NAMES, names, strict=False)))
        check_values(compiled(made, with_numpy_only))
    words = sorted(filter(is_valid_node_name, {*own, *keyword.kwlist, *dir(builtins), *OPTIONS}))
    for names in batched(words, len(NODE_NAMES)):
        made = model()
        rename_nodes(made, dict(zip(NODE_NAMES, names, strict=False)))
        check_values(compiled(made, with_numpy_only))


def batched(names: Sequence[str], size: int) -> list[Sequence[str]]:
    """The names in batches of one size; the last has some of those before it, too."""
    last = max(0, len(names) - size)
    return [names[min(start, last) :][:size] for start in range(0, len(names), size)]


@both_modes
def test_weights_may_have_any_name(tmp_path: Path, with_numpy_only: bool) -> None:
    for name in OPTIONS:
        made = model()
        rename_nodes(made, {"weights": name})
        program = compiled(made, with_numpy_only)
        assert len(program.weights) == 1
        np.savez(tmp_path / "weights.npz", **cast(Any, program.weights))
        with np.load(tmp_path / "weights.npz") as stored:
            np.testing.assert_array_equal(*stored.values(), *program.weights.values())


STRANGE_ATTRS = ["T", "op", "lambda", "two words", CODE, "\uff54\uff4f"]
"""Names of attrs, which may be any: that of a parameter, a word of Python, none in Python at all."""


def strange_op() -> OpDef:
    """An op that takes and gives a float."""
    op_def = OpDef(name="HostileModelsStrange", summary='"""\\\0\r')
    op_def.input_arg.add(name="x", type=DataType.DT_FLOAT)
    op_def.output_arg.add(name="y", type=DataType.DT_FLOAT)
    for name in STRANGE_ATTRS:
        op_def.attr.add(name=name, type="string", default_value=AttrValue(s=b"none"))
    return op_def


global_op_registry().register(OpRegistrationData(strange_op(), unchanged_shape))


@register_kernel("HostileModelsStrange", device="CPU")
class Strange(OpKernel):
    """Adds the lengths of its attrs."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.lengths = [len(construction.get_attr(name)) for name in STRANGE_ATTRS]

    def compute(self, ctx: OpKernelContext) -> None:
        ctx.set_output(0, ctx.input(0) + np.float32(sum(self.lengths)))


def test_attrs_may_have_names_that_are_none_in_python() -> None:
    graph = Graph()
    with graph.as_default():
        x = opkernel.placeholder(DataType.DT_FLOAT, name="x")
        attrs = {name: "a" * number for number, name in enumerate(STRANGE_ATTRS)}
        y = graph.create_op("HostileModelsStrange", [x], attrs=attrs).outputs[0]
    program = decompile([x], [y], "A model")
    assert not names_in(ast.parse(program.source)) & NOT_OF_PROGRAMS
    assert run(program.source, program.weights, np.float32(1)) == (16,)


@pytest.mark.parametrize("text", [*HOSTILE, "a\0b", '"', "\\"])
def test_text_of_a_library_of_ops_is_no_code(text: str) -> None:
    def ops() -> Iterator[OpDef]:
        for part in ("name", "input", "output", "attr", "nothing"):
            op_def = OpDef(name=text if part == "name" else f"Op{part}", summary=text)
            op_def.input_arg.add(name=text if part == "input" else "x", type=DataType.DT_FLOAT)
            for name in (text if part == "output" else "y", "z"):
                op_def.output_arg.add(name=name, type=DataType.DT_FLOAT)
            attr = op_def.attr.add(name=text if part == "attr" else "a", type="string")
            attr.default_value.s = text.encode()
            attr.allowed_values.list.s.append(text.encode())
            several = op_def.attr.add(name="b", type="list(string)")
            several.default_value.list.s.append(text.encode())
            yield op_def

    tree = ast.parse(stub_text(ops(), text))
    names = [one for one in ast.walk(tree) if isinstance(one, ast.Name)]
    assert not {one.id for one in names if isinstance(one.ctx, ast.Load)} & NOT_OF_PROGRAMS
    assert not any(isinstance(one, ast.Call) for one in ast.walk(tree))
    functions = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)}
    assert ast.get_docstring(functions["Opnothing"], clean=False) == re.sub("\r\n?", "\n", text)
