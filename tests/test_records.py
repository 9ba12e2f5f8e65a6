"""`opkernel.records` against the decorator of the standard library, which it stands for."""

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from opkernel import records

STANDARD = SimpleNamespace(
    dataclass=dataclasses.dataclass, field=dataclasses.field, replace=dataclasses.replace
)
OPTIONS = [
    {"frozen": frozen, "slots": slots, "eq": eq, "repr": repr}
    for frozen in (False, True)
    for slots in (False, True)
    for eq in (False, True)
    for repr in (False, True)
]


def a_class(made_by: Any, **options: bool) -> Any:
    @made_by.dataclass(**options)
    class Point:
        """A point."""

        x: int
        y: int = 2
        items: list[int] = made_by.field(default_factory=list)
        hidden: str = made_by.field(default="h", compare=False, repr=False)
        cache: int | None = made_by.field(default=None, init=False)
        found: list[int] = made_by.field(default_factory=list, init=False, repr=False)

    return Point


def result(do: Callable[[], Any]) -> Any:
    try:
        return do()
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(
    "ask",
    [
        lambda made_by, cls: cls(1) == cls(1),
        lambda made_by, cls: cls(1) == cls(1, hidden="other"),
        lambda made_by, cls: cls(1) == cls(2),
        lambda made_by, cls: cls(1) == 1,
        lambda made_by, cls: cls().x,
        lambda made_by, cls: cls(1, 2, [3], "4", 5),
        lambda made_by, cls: cls(1, z=2),
        lambda made_by, cls: cls(1).items is cls(1).items,
        lambda made_by, cls: (cls(1).found, cls(1).found is cls(1).found),
        lambda made_by, cls: (cls(1).y, cls(1).cache, cls(x=5, items=[6]).items),
        lambda made_by, cls: len({cls(1, 2, 3), cls(1, 2, 3)}),
        lambda made_by, cls: setattr(cls(1), "x", 3),
        lambda made_by, cls: delattr(cls(1), "x"),
        lambda made_by, cls: [getattr(made_by.replace(cls(1, 7), x=3), n) for n in "xy"],
        lambda made_by, cls: dataclasses.asdict(dataclasses.replace(cls(1, 7), x=3)),
        lambda made_by, cls: [one.name for one in dataclasses.fields(cls)],
        lambda made_by, cls: copy.copy(cls(1, 5)).y,
        lambda made_by, cls: copy.deepcopy(cls(1, 5)).items,
        lambda made_by, cls: list(inspect.signature(cls).parameters),
        lambda made_by, cls: cls.__match_args__,
        lambda made_by, cls: hasattr(cls(1), "__dict__"),
        lambda made_by, cls: cls.__doc__,
    ],
)
def test_what_it_makes_is_what_the_standard_decorator_makes(
    ask: Callable[[Any, Any], Any], options: dict[str, bool]
) -> None:
    ours, standard = a_class(records, **options), a_class(STANDARD, **options)
    assert result(lambda: ask(records, ours)) == result(lambda: ask(STANDARD, standard))


def test_repr() -> None:
    expected = f"{a_class(STANDARD).__qualname__}(x=1, y=2, items=[], cache=None)"
    assert repr(a_class(records, frozen=True)(1)) == expected


@records.dataclass(frozen=True, slots=True)
class Checked:
    """At the top of the module, so that pickle finds it."""

    number: int

    def __post_init__(self) -> None:
        if self.number < 0:
            raise ValueError("negative")


def test_frozen_instances_cross_pickle() -> None:
    assert pickle.loads(pickle.dumps(Checked(3))) == Checked(3)


def test_post_init_is_called() -> None:
    with pytest.raises(ValueError, match="negative"):
        Checked(-1)


def a_class_above_another(made_by: Any, **options: bool) -> Any:
    @made_by.dataclass(**options)
    class Point:
        x: int
        notes: tuple[str, ...] = made_by.field(default=(), init=False)

    @made_by.dataclass(**options)
    class Named(Point):
        name: str
        size: int = 3

    return Named


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(
    "ask",
    [
        lambda cls: (
            cls(1, "a").x,
            cls(1, "a").notes,
            cls(1, "a", 5).size,
            cls(x=1, name="a").name,
        ),
        lambda cls: cls(1),
        lambda cls: (cls(1, "a") == cls(1, "a"), cls(1, "a") == cls(2, "a")),
        lambda cls: [one.name for one in dataclasses.fields(cls)],
        lambda cls: list(inspect.signature(cls).parameters),
        lambda cls: cls.__match_args__,
        lambda cls: (cls.__base__.__match_args__, cls.__base__(4).x),
        lambda cls: [vars(one).get("__slots__") for one in cls.__mro__],
        lambda cls: copy.copy(cls(1, "a")).name,
    ],
)
def test_it_makes_classes_above_others(ask: Callable[[Any], Any], options: dict[str, bool]) -> None:
    ours, standard = (a_class_above_another(one, **options) for one in (records, STANDARD))
    assert result(lambda: ask(ours)) == result(lambda: ask(standard))
    if options["repr"]:
        assert repr(ours(1, "a")) == repr(standard(1, "a"))
