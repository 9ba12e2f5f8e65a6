"""Device names: `/job:worker/replica:0/task:1/device:GPU:0`, whole or in part.

Three spellings exist. A full name lists parts, each with a leading slash, in any order; `/cpu:0`
and `/gpu:0` are its older form of `/device:CPU:0` and `/device:GPU:0`. A local name is a type and
an index, `GPU:0`. Device scopes read both, and there `gpu:0` means `GPU:0`.

Source: TensorFlow core/util/device_name_utils.cc, python/framework/device_spec.py.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.records import dataclass, replace

_WORD = "[A-Za-z][A-Za-z0-9_]*"
_PART = re.compile(
    rf"/job:(?P<job>\*|{_WORD})"
    r"|/replica:(?P<replica>\*|[0-9]+)"
    r"|/task:(?P<task>\*|[0-9]+)"
    rf"|/device:(?P<type>\*|{_WORD})(?::(?P<id>\*|[0-9]+))?"
    r"|/(?P<short_type>cpu|CPU|gpu|GPU):(?P<short_id>\*|[0-9]+)"
)
_LOCAL = re.compile(rf"({_WORD}):([0-9]+)")


@dataclass(frozen=True, slots=True)
class DeviceName:
    """A device name in parts; None leaves a part open."""

    job: str | None = None
    replica: int | None = None
    task: int | None = None
    type: str | None = None
    id: int | None = None

    @classmethod
    def parse(cls, text: str) -> DeviceName:
        """A name from its text, as device scopes read it: a full name, or `cpu:0`.

        Raises:
            InvalidArgumentError: the text is no device name.
        """
        if _LOCAL.fullmatch(text):
            local = cls.parse_local_name(text)
            return replace(local, type=str(local.type).upper())
        return cls.parse_full_name(text)

    @classmethod
    def parse_full_name(cls, text: str) -> DeviceName:
        """A name from its parts: `/job:a/task:1`, `/device:GPU:*`, `/cpu:0`; `/` is the open name.

        Raises:
            InvalidArgumentError: the text is no full name.
        """
        return _parsed(text)

    @classmethod
    def parse_local_name(cls, text: str) -> DeviceName:
        """A name from type and index, `GPU:0`; the type is taken as it is written.

        Raises:
            InvalidArgumentError: the text is no local name.
        """
        match = _LOCAL.fullmatch(text)
        if match is None:
            raise _malformed(text)
        return cls(type=match[1], id=_number(match[2]))

    @classmethod
    def parse_full_or_local_name(cls, text: str) -> DeviceName:
        """A name from either form; the type of a local name is taken as it is written.

        Raises:
            InvalidArgumentError: the text is neither.
        """
        return cls.parse_local_name(text) if _LOCAL.fullmatch(text) else cls.parse_full_name(text)

    def merge(self, inner: DeviceName) -> DeviceName:
        """This name, with the parts that `inner` sets put over it (EnsureSpecification)."""
        return replace(self, **inner._given())

    def merge_dev_names(
        self, other: DeviceName, *, allow_soft_placement: bool = False
    ) -> DeviceName:
        """The device name that satisfies both names.

        With `allow_soft_placement`, a conflict of types opens type and index, one of indices the
        index.

        Raises:
            InvalidArgumentError: the names conflict.
        """
        merged = self
        for part, value in other._given().items():
            have = getattr(merged, part)
            if have is None or have == value:
                merged = replace(merged, **{part: value})
            elif part == "type" and allow_soft_placement:
                return replace(merged, type=None, id=None)
            elif part == "id" and allow_soft_placement:
                return replace(merged, id=None)
            else:
                raise InvalidArgumentError(
                    f"Cannot merge devices with incompatible {part}s: '{merged}' and '{other}'"
                )
        return merged

    def merge_override_dev_names(self, other: DeviceName) -> DeviceName:
        """The device name that satisfies both; where types or indices conflict, `other` wins.

        Raises:
            InvalidArgumentError: the jobs, replicas or tasks conflict.
        """
        self.merge_dev_names(other, allow_soft_placement=True)  # for its errors
        return self.merge(other)

    def merge_unset_dev_names(self, other: DeviceName) -> DeviceName:
        """This name with its open parts taken from `other`."""
        return other.merge(self)

    def is_specification_of(self, less_specific: DeviceName) -> bool:
        """Whether this name has every part that `less_specific` has (IsSpecification)."""
        return less_specific._given().items() <= self._given().items()

    def is_compatible_with(self, other: DeviceName) -> bool:
        """Whether some device has both names (AreCompatibleDevNames)."""
        return self.merge(other) == other.merge(self)

    def is_same_address_space(self, other: DeviceName) -> bool:
        """Whether both names give one and the same job, replica and task."""
        return self.address_space == other.address_space and self.task_name is not None

    @property
    def has_some_details(self) -> bool:
        """Whether any part is given."""
        return self != DeviceName()

    @property
    def is_complete(self) -> bool:
        """Whether every part is given: the name of one device."""
        return len(self._given()) == len(self.__match_args__)

    @property
    def address_space(self) -> DeviceName:
        """Job, replica and task of this name."""
        return replace(self, type=None, id=None)

    @property
    def task_name(self) -> str | None:
        """The text of job, replica and task; None unless all three are given (GetTaskName)."""
        given = None not in (self.job, self.replica, self.task)
        return str(self.address_space) if given else None

    @property
    def local_name(self) -> str | None:
        """Type and index as `GPU:0`; None unless both are given."""
        return None if None in (self.type, self.id) else f"{self.type}:{self.id}"

    def _given(self) -> dict[str, Any]:
        """The parts that are not open."""
        parts = ((name, getattr(self, name)) for name in self.__match_args__)
        return {name: value for name, value in parts if value is not None}

    def _with_part(self, match: re.Match[str]) -> DeviceName:
        """This name with one part set; `*` opens a part."""
        if match["short_type"] is not None:
            return replace(self, type=match["short_type"].upper(), id=_number(match["short_id"]))
        if match["type"] is not None:
            return replace(self, type=_word(match["type"]), id=_number(match["id"]))
        if match["job"] is not None:
            return replace(self, job=_word(match["job"]))
        if match["replica"] is not None:
            return replace(self, replica=_number(match["replica"]))
        return replace(self, task=_number(match["task"]))

    def __str__(self) -> str:
        """The text; an open index of a given type is `*`."""
        first = (("job", self.job), ("replica", self.replica), ("task", self.task))
        parts = [f"/{name}:{value}" for name, value in first if value is not None]
        if self.type is not None:
            parts.append(f"/device:{self.type}:{'*' if self.id is None else self.id}")
        return "".join(parts)


@functools.lru_cache(maxsize=4096)
def _parsed(text: str) -> DeviceName:
    """The name in a text; many operations have the same."""
    name, position = DeviceName(), 0
    while position < len(text) and text != "/":
        match = _PART.match(text, position)
        if match is None or text[match.end() : match.end() + 1] not in ("", "/"):
            raise _malformed(text)
        name = name._with_part(match)
        position = match.end()
    return name


def canonicalize_device_name(name: str, base_name: str) -> str:
    """The full name that `name` means on the device `base_name`, which fills in its open parts.

    Raises:
        InvalidArgumentError: one of the texts is no device name, or `base_name` leaves a part open.
    """
    try:
        base = DeviceName.parse_full_name(base_name)
    except InvalidArgumentError:
        raise InvalidArgumentError(
            f"Could not parse basename: {base_name} into a device specification."
        ) from None
    if not base.is_complete:
        raise InvalidArgumentError(f"Basename: {base_name} should be fully specified.")
    try:
        parsed = DeviceName.parse_full_or_local_name(name)
    except InvalidArgumentError:
        raise InvalidArgumentError(f"Could not parse {name} into a device specification.") from None
    return str(parsed.merge_unset_dev_names(base))


def device_name_to_cpu_device_name(name: str) -> str:
    """The name of the first CPU beside a device.

    Raises:
        InternalError: `name` is no full name.
    """
    try:
        device = DeviceName.parse_full_name(name)
    except InvalidArgumentError:
        raise InternalError(f"Could not parse device name {name}") from None
    return str(replace(device, type="CPU", id=0))


def _word(text: str) -> str | None:
    return None if text == "*" else text


def _number(text: str | None) -> int | None:
    """The number that a part gives; like TensorFlow's it keeps the lower 32 bits."""
    if text is None or text == "*":
        return None
    digits = text.lstrip("0") or "0"
    number = int(digits) if len(digits) <= 20 else 1 << 64
    if number >= 1 << 64:
        raise InvalidArgumentError("Malformed device specification: a number has over 64 bits")
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)


def _malformed(text: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"Malformed device specification '{text}'")
