"""`Options`, and the methods that set and return them.

Source: TensorFlow python/data/ops/options.py, core/framework/dataset_options.proto.
"""

from __future__ import annotations

from typing import Any, Self

from opkernel import proto
from opkernel.data.structured_function import call_op
from opkernel.data.transformations import Transformations
from opkernel.errors import FailedPreconditionError, InvalidArgumentError
from opkernel.graph import Tensor
from opkernel.messages import did_you_mean, short_repr

_FIELDS: dict[str, tuple[str, type]] = {
    "deterministic": ("deterministic", bool),
    "experimental_deterministic": ("deterministic", bool),
    "experimental_slack": ("slack", bool),
    "experimental_symbolic_checkpoint": ("symbolic_checkpoint", bool),
    "experimental_warm_start": ("warm_start", bool),
    "dataset_name": ("dataset_name", str),
}
"""The field of the message and the type of each option."""


class Options:
    """How a dataset may be computed: hints, which change neither the elements nor their order.

        options = opkernel.data.Options()
        options.deterministic = False
        dataset = dataset.with_options(options)

    Each is None until it is set. A graph keeps them, so TensorFlow finds them in a saved model. TensorFlow's groups of
    options (`autotune`, `threading` and others) are not here.

    Attributes:
        deterministic: Whether the order of elements stays. Here it does in any case.
        experimental_deterministic: The same.
        experimental_slack: Whether the last prefetch begins late.
        experimental_symbolic_checkpoint: Whether saved passes have no buffers.
        experimental_warm_start: Whether a pass begins to work before it is asked.
        dataset_name: A name.

    Raises:
        AttributeError: there is no such option.
        TypeError: the value is of another type.
        ValueError: `Dataset.options` returned them.
    """

    deterministic: bool | None
    experimental_deterministic: bool | None
    experimental_slack: bool | None
    experimental_symbolic_checkpoint: bool | None
    experimental_warm_start: bool | None
    dataset_name: str | None

    __slots__ = ("__weakref__", "_is_fixed", "_message")
    __hash__ = None  # type: ignore[assignment]  # they can be changed

    def __init__(self) -> None:
        object.__setattr__(self, "_message", proto.Options())
        object.__setattr__(self, "_is_fixed", False)

    @classmethod
    def parsed(cls, serialized: bytes, is_fixed: bool = False) -> Options:
        """The options of a serialized message; `is_fixed` where they cannot be set any more.

        Raises:
            InvalidArgumentError: the message is damaged.
        """
        options = cls()
        try:
            options._message.MergeFromString(serialized)
        except proto.DecodeError as error:
            raise InvalidArgumentError(f"No Options of datasets: {error}") from None
        object.__setattr__(options, "_is_fixed", is_fixed)
        return options

    def __reduce__(self) -> Any:
        return Options.parsed, (self.serialized(), self._is_fixed)

    def serialized(self) -> bytes:
        """TensorFlow's message of the options that are set."""
        found: bytes = self._message.SerializeToString()
        return found

    def merge(self, options: Options) -> Options:
        """These options and others, which decide where both are set."""
        if not isinstance(options, Options):
            raise TypeError(f"Options are needed, not {short_repr(options)}")
        return Options.parsed(self.serialized() + options.serialized())

    def __getattr__(self, name: str) -> Any:
        if name not in _FIELDS:
            raise AttributeError(f"Options have no {name!r}{did_you_mean(name, [*_FIELDS])}")
        field, _ = _FIELDS[name]
        return getattr(self._message, field) if self._message.HasField(field) else None

    def __setattr__(self, name: str, value: Any) -> None:
        if self._is_fixed:
            raise ValueError(
                "Options that `Dataset.options()` returned cannot be set: use `Dataset.with_options`"
            )
        if name not in _FIELDS:
            raise AttributeError(f"Options have no {name!r}{did_you_mean(name, [*_FIELDS])}")
        field, kind = _FIELDS[name]
        if not isinstance(value, kind):
            raise TypeError(f"{name} is a {kind.__name__}, not {short_repr(value)}")
        setattr(self._message, field, value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Options) and all(
            getattr(self, name) == getattr(other, name) for name in _FIELDS
        )

    def __repr__(self) -> str:
        values = {name: getattr(self, name) for name in _FIELDS}
        del values["experimental_deterministic"]
        shown = ", ".join(
            f"{name}={value!r}" for name, value in values.items() if value is not None
        )
        return f"<opkernel.data.Options {shown}>" if shown else "<opkernel.data.Options>"


class WithOptions(Transformations):
    """The methods."""

    def with_options(self, options: Options, name: str | None = None) -> Self:
        """The same elements, with options beside those of the stages before: `dataset.with_options(options)`.

        Raises:
            TypeError: the argument is no Options.
        """
        if not isinstance(options, Options):
            raise TypeError(f"Options are needed, not {short_repr(options)}")
        return self._with("OptionsDataset", serialized_options=options.serialized())

    def options(self) -> Options:
        """The options that were set on this dataset and those that it is made of; the last ones decide.

        Raises:
            FailedPreconditionError: the dataset is a tensor of a graph.
        """
        variant = self.variant_tensor
        if isinstance(variant, Tensor):
            raise FailedPreconditionError("`Dataset.options()` works outside graphs only")
        return Options.parsed(call_op("GetOptions", input_dataset=variant), is_fixed=True)
