"""Protocol buffers in files: the bytes of a file, and messages in text format."""

from __future__ import annotations

import os
from typing import TypeVar

from google.protobuf.message import EncodeError

from opkernel.device.budget import current_budget
from opkernel.errors import InvalidArgumentError
from opkernel.file_errors import file_errors
from opkernel.proto import DecodeError, Message

_MAX_BYTES = 2**31 - 1

_AnyMessage = TypeVar("_AnyMessage", bound=Message)


def read_file(path: str | os.PathLike[str]) -> bytes:
    """The content of a file that holds a protocol buffer.

    Raises:
        NotFoundError, PermissionDeniedError: the file cannot be read.
        InvalidArgumentError: it is larger than a protocol buffer may be.
        ResourceExhaustedError: it is larger than the memory limit.
    """
    with file_errors(path):
        size = os.stat(path).st_size
        if size > _MAX_BYTES:
            raise InvalidArgumentError(
                f"{path} is too large: {size} bytes, and a protocol buffer has at most {_MAX_BYTES}"
            )
        budget = current_budget()
        if budget is not None:
            budget.check_memory(size, f"the content of {path}")
        with open(path, "rb") as file:
            return file.read()


def parse_text(
    path: str | os.PathLike[str], data: bytes, message_class: type[_AnyMessage]
) -> _AnyMessage:
    """The message that a file holds in text format.

    Raises:
        InvalidArgumentError: the text is no such message; the error tells the line.
    """
    from google.protobuf import text_format  # slow to import, and seldom needed

    what = f"{path} is not a valid {message_class.DESCRIPTOR.name} in text format"
    try:
        parsed = text_format.Parse(data.decode(), message_class())
        found = message_class()
        found.MergeFromString(parsed.SerializeToString())  # refuses what nests too deep
        return found
    except text_format.ParseError as error:
        line = error.GetLine()
        place = "" if line is None else f" in line {line}"
        raise InvalidArgumentError(f"{what}: error{place}: {error}") from error
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidArgumentError(f"{what}: line {line} is not UTF-8") from error
    except (RecursionError, ValueError, DecodeError, EncodeError) as error:
        raise InvalidArgumentError(f"{what}: {error}") from error
