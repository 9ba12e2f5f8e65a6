"""Inputs of a signature as TensorFlow's saved_model_cli takes them: files, expressions, Examples.

Source: TensorFlow python/tools/saved_model_cli.py (load_inputs_from_input_arg_string and its kin).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from opkernel.cli.exit_status import WrongUse
from opkernel.cli.input_expressions import expression_value
from opkernel.proto import Example, Feature

_FILE = re.compile(r"([^=\[\]]+)=([^\[\]]+)(?:\[([^\[\]]+)\])?")
_NAMED = re.compile(r"\s*([^=]+?)\s*=\s*(.+)", re.DOTALL)


def files_given(text: str) -> list[tuple[str, str]]:
    """The inputs of `--inputs`, as the pairs that `--input` has: `x=a.npz[k];y=b.npy`.

    Raises:
        WrongUse: a part has another form.
    """
    pairs = []
    for part in filter(None, map(str.strip, text.split(";"))):
        match = _FILE.fullmatch(part)
        if match is None:
            raise WrongUse(f"--inputs {part!r}: expected NAME=FILE.npy or NAME=FILE.npz[KEY]")
        name, path, key = match.groups()
        pairs.append((name, f"@{path}:{key}" if key else f"@{path}"))
    return pairs


def expressions_given(text: str) -> dict[str, Any]:
    """The inputs of `--input_exprs`: `x=np.ones((2, 3));y=[1, 2]`.

    Raises:
        WrongUse: a part has another form, or holds what is not allowed.
        ResourceExhaustedError: an array would be too large.
    """
    found: dict[str, Any] = {}
    for part in _parts(text):
        match = _NAMED.fullmatch(part)
        if match is None:
            raise WrongUse(f"--input_exprs {part!r}: expected NAME=EXPRESSION")
        found[match[1]] = expression_value(match[2])
    return found


def examples_given(text: str) -> dict[str, Any]:
    """The inputs of `--input_examples`: lists of dicts, each an Example: `x=[{"age": [22], "name": ["a"]}]`.

    Raises:
        WrongUse: a part is no list of dicts of lists of numbers or strings.
    """
    found: dict[str, Any] = {}
    for part in _parts(text):
        match = _NAMED.fullmatch(part)
        try:
            rows = ast.literal_eval(match[2]) if match else None
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            rows = None
        if (
            match is None
            or not isinstance(rows, list)
            or not all(isinstance(r, dict) for r in rows)
        ):
            raise WrongUse(
                f"--input_examples {part!r}: expected NAME=[{{FEATURE: [VALUE, ...]}}, ...]"
            )
        serialized = np.empty(len(rows), object)
        serialized[:] = [_example(row).SerializeToString(deterministic=True) for row in rows]
        found[match[1]] = serialized
    return found


def _parts(text: str) -> list[str]:
    """The parts of a text between semicolons that are in no string."""
    quoted = r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\""""
    pieces = re.findall(rf"(?:{quoted}|[^;])+", text)
    return [piece.strip() for piece in pieces if piece.strip()]


def _example(row: Mapping[Any, Any]) -> Example:
    """A tf.train.Example of a dict of lists."""
    example = Example()
    for name, values in row.items():
        if not isinstance(name, str) or not isinstance(values, list) or not values:
            raise WrongUse(f"--input_examples: feature {name!r} must be a list of values")
        try:
            _fill(example.features.feature[name], values)
        except (TypeError, ValueError) as error:
            raise WrongUse(f"--input_examples: feature {name!r}: {error}") from error
    return example


def _fill(feature: Feature, values: list[Any]) -> None:
    """Put values into a feature of their kind."""
    if all(isinstance(value, str | bytes) for value in values):
        data = [value.encode() if isinstance(value, str) else value for value in values]
        feature.bytes_list.value.extend(data)
    elif any(isinstance(value, float) for value in values):
        feature.float_list.value.extend(values)
    else:
        feature.int64_list.value.extend(values)
