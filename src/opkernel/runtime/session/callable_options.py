"""CallableOptions: what `DirectSession.make_callable` makes a callable of.

Source: TensorFlow core/protobuf/config.proto.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from opkernel.proto import CallableOptions as CallableOptionsProto
from opkernel.proto import Message
from opkernel.runtime.session.run_options import AnyRunOptions


@dataclass(frozen=True)
class CallableOptions:
    """Feeds, fetches and targets by name. TensorFlow's message is taken wherever this is.

    Attributes:
        feed: The tensors that are fed, in the order of the callable's arguments.
        fetch: The tensors that it returns.
        target: The nodes that it runs besides.
        run_options: The options of its steps.
        tensor_connection: Pairs of tensors; what reads the second one gets the first.
        feed_devices: Where fed tensors are, by name; the first device where nothing is said.
        fetch_devices: Where fetched tensors are to be.
    """

    feed: Sequence[str] = ()
    fetch: Sequence[str] = ()
    target: Sequence[str] = ()
    run_options: AnyRunOptions | None = None
    tensor_connection: Sequence[tuple[str, str]] = ()
    feed_devices: Mapping[str, str] = field(default_factory=dict)
    fetch_devices: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, options: AnyCallableOptions) -> CallableOptions:
        """The options from what a caller gave: these, or the message of any library.

        Raises:
            TypeError: it is neither.
        """
        if isinstance(options, CallableOptions):
            return options
        if not hasattr(options, "SerializeToString"):
            kind = type(options).__name__
            raise TypeError(f"callable_options must be a CallableOptions, not a {kind}")
        given = CallableOptionsProto.FromString(options.SerializeToString())
        return cls(
            tuple(given.feed),
            tuple(given.fetch),
            tuple(given.target),
            given.run_options if given.HasField("run_options") else None,
            [(one.from_tensor, one.to_tensor) for one in given.tensor_connection],
            dict(given.feed_devices),
            dict(given.fetch_devices),
        )


AnyCallableOptions = CallableOptions | Message
