"""JSON as TensorFlow Serving reads it, by rapidjson: NaN and infinities are numbers, and what follows the value does not count.

Members of the object that no request has may be nested as deep as they like.

Source: ParseJson in TensorFlow Serving util/json_tensor.cc; the flags kParseNanAndInfFlag, kParseStopWhenDoneFlag and
kParseIterativeFlag of rapidjson.
"""

from __future__ import annotations

import json
import re
from typing import Any

from opkernel.errors import InvalidArgumentError
from opkernel.graph.core.garbage_collection import paused_garbage_collection

_CONSTANTS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_DECODER = json.JSONDecoder(parse_constant=_CONSTANTS.__getitem__)

_MEMBERS = frozenset({"signature_name", "instances", "inputs", "examples", "context"})
"""What requests have."""
_SPACE = re.compile(r"[ \t\r\n]*")
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|-?(?:NaN|Inf(?:inity)?)\b')
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+')
_MOST_NESTED = 1 << 20
"""Text that is read token by token, which takes long, has so many characters at most."""


def parsed(body: bytes) -> Any:
    """The value that a text in UTF-8 begins with.

    Raises:
        InvalidArgumentError: it is no JSON, or nested too deep.
    """
    if not body:
        raise InvalidArgumentError("JSON Parse error: The document is empty")
    try:
        text = body.decode("utf-8-sig")
        if "Inf" in text or "-NaN" in text:
            text = _WORD.sub(_as_python_has_it, text)
        with paused_garbage_collection():  # millions of new lists, and none is garbage
            return _decoded(text)
    except ValueError as error:  # also for text that is not UTF-8, and numbers that are too long
        raise InvalidArgumentError(f"JSON Parse error: {error}") from None
    except RecursionError:
        raise InvalidArgumentError("JSON Parse error: the lists are too deep") from None


def is_too_large(number: float) -> bool:
    """Whether a number of a request is beyond what a double holds, and no word for infinity."""
    is_infinite = number in (_CONSTANTS["Infinity"], _CONSTANTS["-Infinity"])
    return is_infinite and not any(number is word for word in _CONSTANTS.values())


def _as_python_has_it(token: re.Match[str]) -> str:
    """A word for a number by the name that Python knows; a string as it is."""
    text = token[0]
    if text[0] == '"':
        return text
    return "NaN" if text.endswith("N") else "-Infinity" if text[0] == "-" else "Infinity"


def _decoded(text: str) -> Any:
    start = _SPACE.match(text)
    assert start is not None
    try:
        return _DECODER.raw_decode(text, start.end())[0]
    except RecursionError:
        if len(text) > _MOST_NESTED or text[start.end()] != "{":
            raise
        return _DECODER.decode(_without_others(text))


def _without_others(text: str) -> str:
    """The text of an object with the members alone that requests have."""
    depth, key, name, begin, kept = 0, "", "", 0, []
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if depth == 1 and mark in (",", "}"):
            if key and json.loads(key) in _MEMBERS:
                kept.append(f"{key}:{text[begin : token.start()]}")
            key = ""
        elif depth == 1 and mark == ":":
            key, begin = name, token.end()
        name = mark if mark[0] == '"' else ""
        depth += (mark in ("[", "{")) - (mark in ("]", "}"))
        if not depth:
            return "{" + ",".join(kept) + "}"
    raise ValueError("Missing a comma or } after an object member.")
