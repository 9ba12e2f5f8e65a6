"""`dataclass`, `field` and `replace` as in the standard library, for modules that every process imports.

The standard decorator compiles up to seven functions a class, whenever it is imported: for a hundred
classes a third of what it takes to start and to run a small graph. This one compiles `__init__`
when it is first used; all else is shared. It knows no `order` and no fields by keyword alone. The functions of `dataclasses` take
its instances.
"""

import functools
import sys
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass", "field", "replace"]

if sys.version_info >= (3, 14):
    from annotationlib import Format, get_annotations

    _annotations = functools.partial(get_annotations, format=Format.FORWARDREF)
else:

    def _annotations(cls: type) -> dict[str, Any]:
        found: dict[str, Any] = vars(cls).get("__annotations__", {})
        return found


def _types(cls: type) -> dict[str, Any]:
    """The annotations of a class and of its base classes."""
    return {
        name: one for above in reversed(cls.__mro__) for name, one in _annotations(above).items()
    }


_OF_INSTANCES = "__dict__", "__weakref__"
"""The slots of instances of ordinary classes, which classes with slots lack."""


class _Field:
    """The options of a field: its default, and the methods that use it."""

    __slots__ = ("compare", "default", "default_factory", "init", "repr")

    def __init__(self, **options: Any) -> None:
        self.init = self.repr = self.compare = True
        for name, value in options.items():
            setattr(self, name, value)

    def options(self) -> dict[str, Any]:
        """The options for the standard `field`."""
        return {name: getattr(self, name) for name in self.__slots__ if hasattr(self, name)}


class _StandardFields:
    """`__dataclass_fields__`, made by the standard library when it is asked for."""

    __slots__ = ("of_class",)

    def __init__(self, fields: dict[str, _Field]) -> None:
        self.of_class = fields

    def __get__(self, instance: object, cls: type) -> Any:
        import dataclasses

        types = _types(cls)
        fields = [
            (name, types[name], dataclasses.field(**one.options()))
            for name, one in self.of_class.items()
        ]
        return vars(dataclasses.make_dataclass(cls.__name__, fields))["__dataclass_fields__"]


class _LateInit:
    """The `__init__` of a class until it is first asked for, which compiles it and puts it there."""

    __slots__ = ("fields", "frozen", "owner")

    def __init__(self, owner: type, fields: dict[str, _Field], frozen: bool) -> None:
        self.owner, self.fields, self.frozen = owner, fields, frozen

    def __get__(self, instance: object, cls: type) -> Any:
        init: Any = _init(self.owner, self.fields, self.frozen)
        setattr(self.owner, "__init__", init)  # noqa: B010  # mypy knows of no other there
        return init.__get__(instance, cls)


def _dataclass(
    cls: type | None = None,
    /,
    *,
    frozen: bool = False,
    slots: bool = False,
    eq: bool = True,
    repr: bool = True,
) -> Any:
    if cls is None:
        return functools.partial(_dataclass, frozen=frozen, slots=slots, eq=eq, repr=repr)
    own = {name: _field_of(cls, name) for name in _annotations(cls)}
    inherited = vars(cls.__base__).get("__dataclass_fields__", _StandardFields({})).of_class
    methods = _methods(cls, inherited | own, frozen, slots, eq, repr)
    if slots:
        methods |= {"__slots__": tuple(own), "__qualname__": cls.__qualname__}
        namespace = {k: v for k, v in vars(cls).items() if k not in (*own, *_OF_INSTANCES)}
        cls = type(cls)(cls.__name__, cls.__bases__, namespace | methods)
    else:
        for name, value in methods.items():
            setattr(cls, name, value)
    if "__init__" not in vars(cls):
        setattr(cls, "__init__", _LateInit(cls, inherited | own, frozen))  # noqa: B010  # no function
    return cls


def _field_of(cls: type, name: str) -> _Field:
    """The field of a name; the class keeps no more of it than its default."""
    if name not in vars(cls):
        return _Field()
    given = vars(cls)[name]
    if not isinstance(given, _Field):
        return _Field(default=given)
    delattr(cls, name)
    if hasattr(given, "default"):
        setattr(cls, name, given.default)
    return given


def _methods(
    cls: type, fields: dict[str, _Field], frozen: bool, slots: bool, eq: bool, repr: bool
) -> dict[str, Any]:
    """All that a class gets and has not itself."""
    methods: dict[str, Any] = {
        "__dataclass_fields__": _StandardFields(fields),
        "__match_args__": tuple(name for name, one in fields.items() if one.init),
    }
    if repr:
        methods["__repr__"] = _repr([name for name, one in fields.items() if one.repr])
    if eq:
        methods |= _comparison([name for name, one in fields.items() if one.compare], frozen)
    if frozen:
        methods |= {
            "__setattr__": _refuse_to_set,
            "__delattr__": _refuse_to_delete,
            "__setstate__": _set_state,
        }
    return {name: value for name, value in methods.items() if name not in vars(cls)}


def _init(cls: type, fields: dict[str, _Field], frozen: bool) -> Callable[..., None]:
    scope: dict[str, Any] = {"_set": object.__setattr__, "_ABSENT": object()}
    parameters, lines = ["self"], []
    for name, one in fields.items():
        default, value = "", name
        if hasattr(one, "default"):
            scope[f"_{name}"] = one.default
            default = f"=_{name}"
        elif hasattr(one, "default_factory"):
            scope[f"_{name}"] = one.default_factory
            default, value = "=_ABSENT", f"_{name}() if {name} is _ABSENT else {name}"
        if one.init:
            parameters.append(name + default)
        else:
            value = f"_{name}()" if hasattr(one, "default_factory") else f"_{name}"
        lines.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    body = "\n    ".join(lines or ["pass"])
    exec(f"def __init__({', '.join(parameters)}):\n    {body}", scope)  # of names of fields
    init: Callable[..., None] = scope["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    types = _types(cls)
    init.__annotations__ = {name: types[name] for name in fields} | {"return": None}
    return init


def _repr(names: Sequence[str]) -> Callable[[object], str]:
    def __repr__(self: object) -> str:  # noqa: N807  # it becomes that method
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({values})"

    return __repr__


def _comparison(names: Sequence[str], frozen: bool) -> dict[str, Any]:
    values: Callable[[object], Any] = attrgetter(*names) if names else lambda self: ()

    def __eq__(self: object, other: object) -> bool:  # noqa: N807  # it becomes that method
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    def __hash__(self: object) -> int:  # noqa: N807  # it becomes that method
        return hash(values(self))

    return {"__eq__": __eq__, "__hash__": __hash__ if frozen else None}


def _refuse_to_set(self: object, name: str, value: object) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _set_state(self: object, state: Any) -> None:
    """Take the state from `copy` and `pickle`, past the refusal of a frozen class."""
    for values in state if isinstance(state, tuple) else (state,):
        for name, value in (values or {}).items():
            object.__setattr__(self, name, value)


def _replace(record: Any, /, **changes: Any) -> Any:
    unchanged = {name: getattr(record, name) for name in record.__match_args__}
    return type(record)(**unchanged | changes)


if TYPE_CHECKING:
    from dataclasses import dataclass, field, replace
else:
    dataclass, field, replace = _dataclass, _Field, _replace
