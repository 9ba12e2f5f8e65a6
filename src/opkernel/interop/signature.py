"""Signature: a computation of a model with named inputs and outputs.

Source: TensorFlow core/protobuf/meta_graph.proto (SignatureDef), python/saved_model/signature_serialization.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opkernel.escaping import html_text
from opkernel.graph import TensorSpec
from opkernel.interop.structured_value import parts_of
from opkernel.messages import did_you_mean, short_repr

Run = Callable[[dict[str, Any]], dict[str, Any]]


class Signature:
    """A computation with named inputs and outputs: `signature(x=...)["y"]`.

    Attributes:
        name: Its key among the signatures of the model.
        inputs: What it takes, by name: a TensorSpec, or a tuple of them for a sparse tensor (indices,
            values, shape) or another one that has several parts.
        outputs: What it gives, in the same way.
        method_name: What TensorFlow Serving takes it for, such as `tensorflow/serving/predict`.
        defaults: The values of the inputs that need not be given.

    Args:
        keywords: Further names of inputs, for those whose names are no names in Python.
    """

    def __init__(
        self,
        name: str,
        inputs: Mapping[str, Any],
        outputs: Mapping[str, Any],
        run: Run,
        *,
        method_name: str = "",
        defaults: Mapping[str, Any] | None = None,
        keywords: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.inputs = dict(inputs)
        self.outputs = dict(outputs)
        self.method_name = method_name
        self.defaults = dict(defaults or {})
        self._run = run
        self._keywords = dict(keywords or {})

    @property
    def structured_input_signature(self) -> tuple[tuple[()], dict[str, Any]]:
        """What it takes, as TensorFlow has it: positional arguments, of which there are none, and others."""
        return (), dict(self.inputs)

    @property
    def structured_outputs(self) -> dict[str, Any]:
        """What it gives, by name."""
        return dict(self.outputs)

    def __call__(self, *args: Any, **inputs: Any) -> dict[str, Any]:
        """The outputs by name.

        Args:
            args: The value of the input, where there is only one.
            inputs: The values of the inputs, by name.

        Raises:
            TypeError: an input is missing, or unknown.
            InvalidArgumentError: a value has another type or shape than the input.
        """
        try:
            if args:
                inputs = {**self._positional(args), **inputs}
            if inputs.keys() != self.inputs.keys():
                inputs = self._spread(inputs)
                named = {self._keywords.get(name, name): value for name, value in inputs.items()}
                inputs = {**self.defaults, **named}
                self._check(inputs)
            return self._run(inputs)
        except Exception as error:
            from opkernel.tracebacks import hide_frames

            hide_frames(error)
            raise

    def _positional(self, args: tuple[Any, ...]) -> dict[str, Any]:
        if len(args) > 1 or len(self.inputs) != 1:
            raise TypeError(f"{self} takes its inputs by name; {self._takes}")
        return dict(zip(self.inputs, args, strict=True))

    def _spread(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The tensors of ragged and sparse values by their names: `x`, `x_1` and so on."""
        spread: dict[str, Any] = {}
        for name, value in inputs.items():
            parts = parts_of(value)
            names = [name, *[f"{name}_{i}" for i in range(1, len(parts))]]
            is_spread = parts and all(one in self.inputs for one in names)
            spread |= zip(names, parts, strict=True) if is_spread else {name: value}
        return spread

    def _check(self, inputs: Mapping[str, Any]) -> None:
        for name in inputs:
            if name not in self.inputs:
                raise TypeError(
                    f"{self} has no input {name!r}{did_you_mean(name, self.inputs)}; {self._takes}"
                )
        missing = [name for name in self.inputs if name not in inputs]
        if missing:
            names = ", ".join(map(repr, missing))
            raise TypeError(f"{self} is missing its input {names}; {self._takes}")

    @property
    def _takes(self) -> str:
        """Its inputs, for messages."""
        return f"its inputs are: {_listed(self.inputs) or 'none'}"

    def __str__(self) -> str:
        return f"Signature {self.name!r}"

    def __repr__(self) -> str:
        takes, gives = _listed(self.inputs), _listed(self.outputs)
        return f"<opkernel.Signature {self.name}({takes}) -> {{{gives}}}>"

    def _repr_html_(self) -> str:
        """A table of its inputs and outputs, which notebooks show."""
        rows = [
            (kind, name, part)
            for kind, specs in (("input", self.inputs), ("output", self.outputs))
            for name, spec in specs.items()
            for part in (spec if isinstance(spec, tuple) else (spec,))
        ]
        return f"<b>{html_text(self.name)}</b>{_table(rows)}"


class SignatureMap(Mapping[str, Signature]):
    """The signatures of a model by name; an unknown name is told with those that there are."""

    def __init__(self, signatures: Mapping[str, Signature]) -> None:
        self._signatures = dict(sorted(signatures.items()))

    def __getitem__(self, name: str) -> Signature:
        try:
            return self._signatures[name]
        except (KeyError, TypeError):
            known = ", ".join(self._signatures) or "none"
            raise KeyError(
                f"no signature {short_repr(name)}; the model has {known}{did_you_mean(name, self._signatures)}"
            ) from None

    def __iter__(self) -> Any:
        return iter(self._signatures)

    def __len__(self) -> int:
        return len(self._signatures)

    def __repr__(self) -> str:
        lines = "".join([f"\n  {signature!r}" for signature in self._signatures.values()])
        return f"<opkernel.SignatureMap{lines}>"

    def _repr_html_(self) -> str:
        """The tables of all signatures, which notebooks show."""
        return "".join([signature._repr_html_() for signature in self.values()])


def model_html(kind: str, path: str, tags: Sequence[str], signatures: SignatureMap) -> str:
    """What notebooks show of a model: its kind, its path, its tags, the tables of its signatures."""
    title = f"<b>{html_text(kind)}</b> <code>{html_text(path)}</code>"
    return (
        f"<div>{title}, tags {html_text(', '.join(tags) or 'none')}</div>{signatures._repr_html_()}"
    )


def _table(rows: Sequence[tuple[str, str, TensorSpec]]) -> str:
    lines = [
        "".join(
            [
                f"<td>{html_text(text)}</td>"
                for text in (kind, name, part.dtype.tf_name, str(part.shape))
            ]
        )
        for kind, name, part in rows
    ]
    body = "".join([f"<tr>{line}</tr>" for line in lines])
    head = "<tr><th></th><th>name</th><th>type</th><th>shape</th></tr>"
    return f"<table>{head}{body}</table>"


def _listed(specs: Mapping[str, Any]) -> str:
    return ", ".join([f"{name}: {_text(spec)}" for name, spec in specs.items()])


def _text(spec: Any) -> str:
    return str(spec) if isinstance(spec, TensorSpec) else f"({', '.join(map(str, spec))})"
