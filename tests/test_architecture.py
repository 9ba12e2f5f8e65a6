"""Rules of the house that no linter knows."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from opkernel.ops.declared import tensorflow_op_defs

SOURCES = Path(__file__).parent.parent / "src" / "opkernel"
REPORTING = {"cli", "plugins", "testing"}
"""Rooms that tell people where things stand."""

NO_RIGHTS = {
    "gradients/registry.py": "which of two registrations gives way to the other",
    "kernel/verification.py": "which errors tell a fault of a kernel",
}
"""Where modules are asked for their names, and nothing is granted for it."""

_OF_US = re.compile(r"opkernel(\.|$)")
_ASKING = {"startswith", "endswith", "match", "fullmatch", "removeprefix", "partition"}


def names_of_our_modules(source: str) -> Iterator[ast.expr]:
    """Where code asks whether something is, or begins with, the name of a module of ours."""
    tree = ast.parse(source)
    ours = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and _holds(node.value, set())
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        asked: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            asked = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _ASKING:
            asked = list(node.args)
        yield from (one for one in asked if _holds(one, ours))


def _holds(expression: ast.expr, names: set[str]) -> bool:
    """Whether the name of a module of ours stands in an expression, by itself or by a name for it."""
    for node in ast.walk(expression):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if _OF_US.match(node.value):
                return True
        elif isinstance(node, ast.Name) and node.id in names:
            return True
    return False


def test_no_right_comes_from_the_name_of_a_module() -> None:
    """What a kernel, op or gradient may do, it claims: nobody asks whether it is one of ours."""
    found = [
        f"{path.relative_to(SOURCES)}:{asked.lineno}: {ast.unparse(asked)}"
        for path in sorted(SOURCES.rglob("*.py"))
        if path.relative_to(SOURCES).parts[0] not in REPORTING
        and str(path.relative_to(SOURCES)) not in NO_RIGHTS
        for asked in names_of_our_modules(path.read_text())
    ]
    assert not found, found


def test_that_rule_finds_what_it_is_about() -> None:
    for wrong in (
        'kernel.is_trusted = owner.startswith("opkernel.ops.")',
        'if module == "opkernel.ops.math.arithmetic": pass',
        '_PACKAGE = "opkernel"\ndef f(owner): return owner.startswith(f"{_PACKAGE}.")',
        'owner in ("opkernel.ops", "numpy")',
    ):
        assert list(names_of_our_modules(wrong)), wrong
    assert not list(names_of_our_modules('thread.name.startswith("opkernel intra-op")'))


STRUCTURAL = {
    "graph/core/structural_ops.py": "what graphs themselves are made of, with the control flow of TensorFlow 1",
}
"""Where the names of ops stand that executors and graphs treat by themselves."""

_MANY = 4
_DISPLAYS = (ast.Set, ast.List, ast.Tuple, ast.Dict)
_OP_NAME = re.compile(r"_?[A-Z]\w*[a-z]\w*")
_NO_OPS = {"NHWC", "NDHWC", "NCHW", "NCDHW", "GeluExact", "GeluApproximate"} | {
    *(
        "_XlaAlreadyClustered",
        "_XlaCluster",
        "_XlaCompile",
        "_XlaCompileTimeConstantInputs",
        "_XlaCompiledKernel",
        "_XlaMustCompile",
    ),
    *("_XlaInternalScope", "_XlaScope", "_XlaNumConstantArgs", "_XlaNumResourceArgs"),
}
"""Layouts, activations that fused ops know, and an attr."""


def collections_of_ops(source: str) -> Iterator[tuple[int, set[str]]]:
    """The statements of code that hold many names of ops: lists, sets, tables of what is so for ops.

    Patterns are none, which are annotated as such, nor tables of code for each op.
    """
    for statement in ast.walk(ast.parse(source)):
        if isinstance(statement, ast.AnnAssign) and "Pattern" in ast.unparse(statement.annotation):
            continue
        if isinstance(statement, ast.stmt) and not hasattr(statement, "body"):
            found: set[str] = set()
            for node in ast.walk(statement):
                if isinstance(node, _DISPLAYS) and not _is_table_of_code(node):
                    found |= _strings_in(node) & tensorflow_op_defs().keys()
            if len(found) >= _MANY:
                yield statement.lineno, found


def _strings_in(display: ast.expr) -> set[str]:
    parts = display.keys if isinstance(display, ast.Dict) else getattr(display, "elts", ())
    return {p.value for p in parts if isinstance(p, ast.Constant) and isinstance(p.value, str)}


def _is_table_of_code(node: ast.AST) -> bool:
    """Whether each value of a dict is a function, or is made by one."""
    return isinstance(node, ast.Dict) and all(map(_is_code, node.values))


def _is_code(value: ast.expr) -> bool:
    if isinstance(value, ast.Tuple):
        return all(map(_is_code, value.elts))
    is_call = isinstance(value, ast.Call) and ast.unparse(value.func) not in ("frozenset", "set")
    return is_call or isinstance(value, ast.Name | ast.Attribute | ast.Lambda)


def test_what_is_so_for_ops_their_traits_say() -> None:
    """No room below the ops lists them by name: they declare what may be assumed of them."""
    found = [
        f"{path.relative_to(SOURCES)}:{line}: {', '.join(sorted(names))}"
        for room in ("optimization", "graph", "runtime")
        for path in sorted((SOURCES / room).rglob("*.py"))
        if str(path.relative_to(SOURCES)) not in STRUCTURAL
        for line, names in collections_of_ops(path.read_text())
    ]
    assert not found, found


def test_that_rule_knows_tables_from_code() -> None:
    for wrong in (
        'A = frozenset({"Abs", "Neg"} | {"Exp", "Log"})',
        'def f(op): return op.type in ("Add", "Sub", "Mul", "Div")',
        'RANK = {"Conv2D": 4, "Conv3D": 5, "MatMul": 2, "BatchMatMul": 3}',
        'register(ops=["Add", "Sub", "Mul", "Div"])',
    ):
        assert list(collections_of_ops(wrong)), wrong
    for right in (
        'RULES = {"Add": _add, "Sub": _sub, "Mul": (_mul, _one), "Div": rule(1)}',
        'A: Pattern = frozenset({"Abs", "Neg", "Exp", "Log"})',
        'A = {"Abs", "Neg", "Exp"}',
    ):
        assert not list(collections_of_ops(right)), right


def unknown_ops(source: str) -> set[str]:
    """What code has as names of ops, by their looks, though no op has that name."""
    tree = ast.parse(source)
    defs = tensorflow_op_defs()
    known = {*defs, *_NO_OPS, *(attr.name for op_def in defs.values() for attr in op_def.attr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.alias | ast.ClassDef):
            known.add(node.name)
        elif isinstance(node, ast.JoinedStr):
            known.update(str(one.value) for one in node.values if isinstance(one, ast.Constant))
    texts = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)}
    return {t for t in texts if isinstance(t, str) and _OP_NAME.fullmatch(t)} - known


def test_ops_that_passes_name_exist() -> None:
    assert unknown_ops('if op.type == "Gelu": editor.become(op, "Relu", [], {"T": 1})') == {"Gelu"}
    found = {
        str(path.relative_to(SOURCES)): names
        for path in sorted((SOURCES / "optimization").rglob("*.py"))
        if (names := unknown_ops(path.read_text()))
    }
    assert not found, found


def test_nobody_takes_the_first_of_all_devices() -> None:
    """The caller's device is `client_device`: `all[0]` would say that the order of devices means it."""
    found = [
        f"{path.relative_to(SOURCES)}:{node.lineno}"
        for path in sorted(SOURCES.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "all"
        and isinstance(node.slice, ast.Constant)
    ]
    assert not found, found


def test_the_runtime_spells_out_no_device_type() -> None:
    """Which devices there are, and what they can, factories and kernels say."""
    found = [
        f"{path.relative_to(SOURCES)}:{node.lineno}"
        for room in ("runtime", "cli", "optimization", "decompile")
        for path in sorted((SOURCES / room).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and node.value == "CPU"
    ]
    assert not found, found


def test_no_closure_is_read() -> None:
    """What a function is made of stands beside it as data."""
    words = ("getclosurevars", "__closure__", "cell_contents")
    found = [
        str(path.relative_to(SOURCES))
        for path in sorted(SOURCES.rglob("*.py"))
        if any(word in path.read_text() for word in words)
    ]
    assert not found, found
