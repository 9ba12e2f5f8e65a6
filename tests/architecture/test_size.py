"""The package stays small, and so do its files, its functions, and what functions take."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.source_code import PACKAGE, modules

MAX_PACKAGE_BYTES = 10 << 20
"""What the package may take on disk."""
MAX_FILE_LINES = 450
MAX_FUNCTION_LINES = 60
MAX_ARGUMENTS = 6
"""That a function takes by position; more are a record, or have names."""
LONG_SIGNATURES = {
    "Graph.create_op": "TensorFlow's",
    "InferenceContext.__init__": "TensorFlow's",
    "TextFileInitializer.__init__": "TensorFlow's",
    "Ftrl.__init__": "TensorFlow's",
    "get_windowed_output_size_verbose": "TensorFlow's",
    "get_windowed_output_size_from_dims_v2": "TensorFlow's",
    "strided_index": "the inputs and attrs of StridedSlice",
}
"""Functions with more arguments, and who has settled them."""
SETTLED_ELSEWHERE = {
    "cli": "the options of commands",
    "data": "the parameters of TensorFlow's methods",
    "endpoints": "the parameters of TensorFlow's functions",
    "ops": "the inputs of ops",
}
"""The rooms whose functions may take more, and what these are."""


def test_the_package_stays_small() -> None:
    files = [
        file for file in PACKAGE.rglob("*") if file.is_file() and "__pycache__" not in file.parts
    ]
    assert sum(file.stat().st_size for file in files) < MAX_PACKAGE_BYTES


def test_files_stay_small() -> None:
    lengths = {path: len((PACKAGE / path).read_text().splitlines()) for path in paths()}
    assert {path: n for path, n in lengths.items() if n > MAX_FILE_LINES} == {}


def test_functions_stay_small() -> None:
    long = {
        f"{module.name}.{name}": lines
        for module in modules().values()
        for name, function in functions(module.tree)
        if (lines := (function.end_lineno or 0) - function.lineno + 1) > MAX_FUNCTION_LINES
    }
    assert long == {}


def test_functions_take_few_arguments_by_position() -> None:
    many = {
        name
        for module in modules().values()
        if module.path.parts[0] not in SETTLED_ELSEWHERE
        for name, function in functions(module.tree)
        if arguments(name, function) > MAX_ARGUMENTS and not is_loop(function)
    }
    assert many == set(LONG_SIGNATURES)


def is_loop(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function is compiled, and so takes arrays and numbers instead of records."""
    names = {
        node.id
        for one in function.decorator_list
        for node in ast.walk(one)
        if isinstance(node, ast.Name)
    }
    return bool(names & {"loop", "part_of_loops"})


def paths() -> list[Path]:
    return [module.path for module in modules().values()]


def functions(
    tree: ast.AST, outer: str = ""
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """All functions in a tree, with the names of the classes that they are in."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield outer + node.name, node
        inner = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        yield from functions(node, inner)


def arguments(name: str, function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many arguments a function takes by position, beside the object that a method is of."""
    given = [*function.args.posonlyargs, *function.args.args]
    is_method = "." in name and bool(given) and given[0].arg in ("self", "cls")
    return len(given) - is_method
