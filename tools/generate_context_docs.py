"""Write the lists of services in `docs/kernels.md`: what a context and a construction have, with signatures.

Run after a member was added or changed: `python tools/generate_context_docs.py`. With `--check`
nothing is written and the exit status says whether the page is current.
"""

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from opkernel.kernel import OpKernelConstruction, OpKernelContext

PAGE = Path(__file__).resolve().parent.parent / "docs" / "kernels.md"
CLASSES = (OpKernelConstruction, OpKernelContext)
ATTRIBUTE = re.compile(r"^ {4}(\w+): (.+(?:\n {8}.+)*)", re.MULTILINE)


def listed(cls: type) -> str:
    """The members of a class and of those that it is made of, part by part."""
    return "\n".join(line for part in cls.__mro__[:-1] for line in _part(part))


def _part(cls: type) -> Iterator[str]:
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(tree, ast.ClassDef)
    members = [*_attributes(cls), *_methods(tree)]
    if members:
        yield f"\n*{_summary(inspect.getdoc(cls))}*\n"
        yield from members


def _attributes(cls: type) -> Iterator[str]:
    """What the class's docstring says of its attributes."""
    section = (inspect.getdoc(cls) or "").partition("\nAttributes:\n")[2]
    for name, text in ATTRIBUTE.findall(section):
        yield f"- `{name}`: {_summary(text)}"


def _methods(tree: ast.ClassDef) -> Iterator[str]:
    for node, following in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Call):  # `delegated_to`
            assert isinstance(following, ast.Expr)
            text = ast.literal_eval(following.value)
            yield f"- `{ast.unparse(node.target)} -> {ast.unparse(node.annotation)}`: {_summary(text)}"
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            marks = {ast.unparse(mark) for mark in node.decorator_list}
            if "overload" not in marks:
                yield f"- `{_signature(node, 'property' in marks)}`: {_summary(ast.get_docstring(node))}"


def _signature(node: ast.FunctionDef, is_property: bool) -> str:
    args = ast.unparse(node.args).removeprefix("self").removeprefix(", ")
    result = "" if node.returns is None else f" -> {ast.unparse(node.returns)}"
    return f"{node.name}{result}" if is_property else f"{node.name}({args}){result}"


def _summary(text: str | None) -> str:
    """The first paragraph, on one line."""
    return " ".join((text or "").partition("\n\n")[0].split())


def page(text: str) -> str:
    """The page with the lists as they should be."""
    for cls in CLASSES:
        begin, end = f"<!-- members of {cls.__name__} -->\n", "\n<!-- end of members -->"
        before, _, rest = text.partition(begin)
        assert rest, f"the page has no '{begin.strip()}'"
        text = f"{before}{begin}{listed(cls)}\n{end}{rest.partition(end)[2]}"
    return text


def main() -> int:
    text = PAGE.read_text(encoding="utf-8")
    new = page(text)
    if "--check" in sys.argv[1:]:
        if text == new:
            return 0
        print("stale: docs/kernels.md; run tools/generate_context_docs.py")
        return 1
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
