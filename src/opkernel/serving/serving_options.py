"""What a server of models is told when it starts."""

from __future__ import annotations

from collections.abc import Mapping

from opkernel.device.permissions import NO_PERMISSIONS, Permissions
from opkernel.records import dataclass, field


@dataclass(frozen=True)
class ServingOptions:
    """The options of a server.

    Attributes:
        jit: The engine that compiles parts of the models, as for a Session.
        max_batch: The most rows that requests are joined to; with 1 none are joined.
        batch_timeout_s: How long a request waits for others to join.
        max_request_bytes: The largest body of a request.
        timeout_s: The longest that a request may take.
        labels: Names of versions, for the paths with `/labels/NAME`.
        permissions: What the graphs of the models may read and write.
    """

    jit: str = ""
    max_batch: int = 1
    batch_timeout_s: float = 0.001
    max_request_bytes: int = 64 << 20
    timeout_s: float = 30.0
    labels: Mapping[str, int] = field(default_factory=dict)
    permissions: Permissions = NO_PERMISSIONS
