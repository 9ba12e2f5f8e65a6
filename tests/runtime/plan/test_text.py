"""The text of each kind of statement, as Python reads it."""

from collections.abc import Callable
from typing import Any

import pytest

from opkernel.runtime.plan import tree
from opkernel.runtime.plan.text import Identifiers, Writer, tuple_text

Make = Callable[[], tree.Item]


class Named:
    """What a text needs of an operation."""

    name = "scope/node"


NODE: Any = Named()


def with_reads(item: Any, *reads: str, releases: tuple[str, ...] = (), **more: Any) -> Any:
    """An item, with the locals that it reads and lets go of."""
    item.reads, item.releases = reads, releases
    for name, value in more.items():
        setattr(item, name, value)
    return item


def call(kind: type[tree.Call] = tree.Call, results: Any = "y", **more: Any) -> Any:
    sets = (results,) if isinstance(results, str) else tuple(results)
    return kind(None, ("a", "b"), sets, "f", ("a", "b"), results, **more)


def condition() -> tree.Condition:
    return tree.Condition("p", check="scalar_of")


TEXTS: dict[str, tuple[Any, list[str]]] = {
    "a call": (call(), ["y = f(a, b)"]),
    "a call of a node": (
        tree.Call(NODE, (), ("y",), "f", ("a", ["b", "c"]), "y"),
        ["y = f(a, [b, c])  # 'scope/node'"],
    ),
    "a call for nothing": (tree.Call(None, (), (), "f", ("a",), ()), ["f(a)"]),
    "several results": (
        tree.Call(None, (), ("y", "z", "u"), "f", ("step", ()), ("y", ("z", "u"))),
        ["(y, (z, u)) = f(step, ())"],
    ),
    "one result of a tuple": (call(results=("y",)), ["(y,) = f(a, b)"]),
    "a call that lets go": (
        with_reads(call(), "a", "b", releases=("a", "c")),
        ["y = f(a, b); del a; c = None"],
    ),
    "a call that only clears": (
        with_reads(call(), releases=("c",)),
        ["y = f(a, b); c = None"],
    ),
    "a call into an operand": (
        with_reads(call(tree.PlacedCall, places=("a", "b")), "a", "b", releases=("b",)),
        ["y = f(a, b, b); del b"],
    ),
    "a call into an operand by keyword": (
        with_reads(
            call(tree.PlacedCall, places=("a", "b"), by_keyword=True), "a", "b", releases=("b", "a")
        ),
        ["y = f(a, b, out=a); del b, a"],
    ),
    "a call into no operand": (
        with_reads(call(tree.PlacedCall, places=("a",)), "a", "b", releases=("b",)),
        ["y = f(a, b); del b"],
    ),
    "a call that takes buffers over": (
        with_reads(
            tree.ForwardingCall(
                None, ("box",), ("y", "box"), "f", ("step", ["a", "b"]), ("y",), box="box"
            ),
            *("a", "b"),
            releases=("a", "box"),
        ),
        ["box = [a, b]; del a; (y,) = f(step, box); del box"],
    ),
    "a call on tiles": (
        call(tree.TiledCall, sized=("a", "b"), least=9, width=4),
        ["y = f(a, b) if a.size + b.size >= 9 else None  # 4 nodes"],
    ),
    "a call on tiles of two results": (
        call(tree.TiledCall, ("y", "z"), sized=("a",), least=9, width=5),
        ["(y, z) = f(a, b) if a.size >= 9 else (None, None)  # 5 nodes"],
    ),
    "an if of functions": (
        call(tree.FunctionCall, test=tree.Apply("truth", ("p",)), otherwise="g"),
        ["y = (f if truth(p) else g)(a, b)"],
    ),
    "a case of functions": (call(tree.FunctionCall, index="i"), ["y = f(i)(a, b)"]),
    "a function under watch": (call(tree.FunctionCall, watcher="watched"), ["y = watched(f)(a, b)"]),
    "two operands": (tree.OperatorCall(None, (), ("y",), "<", ("a", "b")), ["y = a < b"]),
    "one operand": (tree.OperatorCall(None, (), ("y",), "-", ("a",)), ["y = -a"]),
    "values": (
        tree.Assign(None, (), ("y", "z"), ("a", tree.Plain("it's"))),
        ["""y, z = a, "it's\""""],
    ),
    "a check": (
        tree.CheckScalar(NODE, (), (), "p", "scalar_of"),
        ["p.ndim and scalar_of(p)  # 'scope/node'"],
    ),
    "a value on a branch": (
        tree.Assign(
            None,
            *((), ("y",)),
            (
                tree.Select(
                    [condition(), tree.Condition("q", "not"), tree.Condition("i", "==", tree.Plain(2))],
                    "a",
                    "DEAD",
                ),
            ),
        ),
        ["y = a if scalar_of(p) and not q and i == 2 else DEAD"],
    ),
    "branches": (
        with_reads(
            tree.Branches(
                None,
                (),
                [
                    tree.Branch(condition(), frozenset(), [call()], ("a", "c")),
                    tree.Branch(tree.Condition("q", "is not", "DEAD"), frozenset(), []),
                    tree.Branch(None, frozenset(), [], ("b",)),
                ],
            ),
            releases=("p",),
        ),
        [
            *("if scalar_of(p):", "    del a", "    c = None", "    y = f(a, b)"),
            *("elif q is not DEAD:", "    pass", "else:", "    del b", "del p"),
        ],
    ),
    "a loop": (
        with_reads(
            tree.While(None, (), "p", [call()], [call(results="z")], frozenset(), "one_thread"),
            releases=("y",),
            body_releases=("p",),
        ),
        [
            *("with one_thread():", "    while True:", "        y = f(a, b)"),
            *("        if not p: break", "        step.check(); del p", "        z = f(a, b)", "del y"),
        ],
    ),
    "a loop without a body": (
        tree.While(None, (), "p", [], [], frozenset()),
        ["while True:", "    if not p: break", "    step.check()"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", TEXTS)
def test_the_text_of(what: str) -> None:
    item, lines = TEXTS[what]
    function = tree.PlanFunction("plan", ["step", "a"], [item], ["y"])
    function.cleared = frozenset({"c"})
    texts = Writer(function).texts
    body = [f"    {line}" for line in lines]
    assert texts == ["def plan(step, a):", *body, "    return (y,)"]
    compile("\n".join(texts), "plan", "exec")


def test_locals_that_are_not_set_everywhere_are_none_at_first() -> None:
    function = tree.PlanFunction("part", ["step"], [call()], ["y", "z"])
    function.unset = ["y", "z"]
    writer = Writer(function)
    assert writer.texts == [
        *("def part(step):", "    y = z = None", "    y = f(a, b)", "    return (y, z)")
    ]
    assert writer.items == [None, None, function.block[0], None]


def test_tuples_of_names() -> None:
    assert [tuple_text(names) for names in ([], ["a"], ["a", "b"], [["a"], []])] == [
        *("()", "(a,)", "(a, b)", "((a,), ())")
    ]


@pytest.mark.parametrize(
    ("hint", "name"),
    [
        ("a", "a"),
        ("scope/a.b-c", "scope_a_b_c"),
        ("_a_", "a"),
        ("3d", "t3d"),
        ("", "t"),
        ("\u00e9", "t"),
        ("step", "step_1"),
        ("for", "for_1"),
        ("print", "print_1"),
        ("match", "match_1"),
        ("x" * 61, "x" * 60),
        ("x" * 60, "x" * 60),
        ("y" + "x" * 60, "x" * 60),
        ("a_", "a"),
    ],
)
def test_identifiers(hint: str, name: str) -> None:
    """A name of a model becomes an identifier that is no word of Python, and no other's."""
    assert Identifiers(["step"]).unique(hint) == name
    names = Identifiers(["step"])
    found = [names.unique(hint) for _ in range(12)]
    assert len({*found}) == 12
    assert all(one.isidentifier() for one in found)
    base = found[0].removesuffix("_1")
    first = 1 if found[0] == base else 2
    assert found[1:] == [f"{base}_{number}" for number in range(first, first + 11)]
