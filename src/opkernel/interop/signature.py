"""Signature: a computation of a model with named inputs and outputs.

Source: TensorFlow core/protobuf/meta_graph.proto (SignatureDef), python/saved_model/signature_serialization.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from opkernel.graph import TensorSpec
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
        if args:
            inputs = {**self._positional(args), **inputs}
        if inputs.keys() != self.inputs.keys():
            named = {self._keywords.get(name, name): value for name, value in inputs.items()}
            inputs = {**self.defaults, **named}
            self._check(inputs)
        return self._run(inputs)

    def _positional(self, args: tuple[Any, ...]) -> dict[str, Any]:
        if len(args) > 1 or len(self.inputs) != 1:
            raise TypeError(
                f"{self} takes its inputs by name: {', '.join(f'{name}=...' for name in self.inputs)}"
            )
        return dict(zip(self.inputs, args, strict=True))

    def _check(self, inputs: Mapping[str, Any]) -> None:
        for name in inputs:
            if name not in self.inputs:
                raise TypeError(f"{self} has no input {name!r}{did_you_mean(name, self.inputs)}")
        missing = [name for name in self.inputs if name not in inputs]
        if missing:
            raise TypeError(f"{self} is missing its input {', '.join(map(repr, missing))}")

    def __str__(self) -> str:
        return f"Signature {self.name!r}"

    def __repr__(self) -> str:
        takes = ", ".join([f"{name}: {_text(spec)}" for name, spec in self.inputs.items()])
        gives = ", ".join([f"{name}: {_text(spec)}" for name, spec in self.outputs.items()])
        return f"<opkernel.Signature {self.name}({takes}) -> {{{gives}}}>"


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


def _text(spec: Any) -> str:
    return str(spec) if isinstance(spec, TensorSpec) else f"({', '.join(map(str, spec))})"
