"""Device names: `/job:worker/replica:0/task:1/device:GPU:0`, whole or in part.

Source: TensorFlow core/util/device_name_utils.cc, python/framework/device_spec.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from opkernel.errors import InvalidArgumentError

__all__ = ["DeviceName"]

_PART = (
    r"/job:(?P<job>\*|[A-Za-z][A-Za-z0-9_]*)"
    r"|/replica:(?P<replica>\*|[0-9]{1,9})"
    r"|/task:(?P<task>\*|[0-9]{1,9})"
    r"|/device:(?P<type>\*|[A-Za-z][A-Za-z0-9_]*)(?::(?P<id>\*|[0-9]{1,9}))?"
    r"|/(?P<short_type>cpu|CPU|gpu|GPU):(?P<short_id>\*|[0-9]{1,9})"
)
_LOCAL = r"[A-Za-z][A-Za-z0-9_]*:[0-9]{1,9}"


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
        """A name from its text; `/cpu:0` and `cpu:0` are short for `/device:CPU:0`.

        Raises:
            InvalidArgumentError: the text is no device name.
        """
        if re.fullmatch(_LOCAL, text):
            kind, _, number = text.partition(":")
            return cls(type=kind.upper(), id=int(number))
        name, position = cls(), 0
        while position < len(text) and text != "/":
            match = re.match(_PART, text[position:])
            if match is None or text[position + match.end() :][:1] not in ("", "/"):
                raise InvalidArgumentError(f"Malformed device specification '{text}'")
            name = name._with_part(match)
            position += match.end()
        return name

    def merge(self, inner: DeviceName) -> DeviceName:
        """This name with what `inner` says put over it."""
        return DeviceName(
            inner.job if inner.job is not None else self.job,
            inner.replica if inner.replica is not None else self.replica,
            inner.task if inner.task is not None else self.task,
            inner.type if inner.type is not None else self.type,
            inner.id if inner.id is not None else self.id,
        )

    def _with_part(self, match: re.Match[str]) -> DeviceName:
        """This name with one part set; `*` opens a part."""
        if match["short_type"] is not None:
            return replace(self, type=match["short_type"].upper(), id=_number(match["short_id"]))
        if match["type"] is not None:
            kind = None if match["type"] == "*" else match["type"]
            return replace(self, type=kind, id=_number(match["id"]))
        if match["job"] is not None:
            return replace(self, job=None if match["job"] == "*" else match["job"])
        if match["replica"] is not None:
            return replace(self, replica=_number(match["replica"]))
        return replace(self, task=_number(match["task"]))

    def __str__(self) -> str:
        """The text; an open index of a given type is `*`."""
        parts = [
            f"/job:{self.job}" if self.job is not None else "",
            f"/replica:{self.replica}" if self.replica is not None else "",
            f"/task:{self.task}" if self.task is not None else "",
        ]
        if self.type is not None:
            parts.append(f"/device:{self.type}:{'*' if self.id is None else self.id}")
        return "".join(parts)


def _number(text: str | None) -> int | None:
    return None if text is None or text == "*" else int(text)
