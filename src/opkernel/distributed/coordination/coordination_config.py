"""CoordinationConfig: how the coordination service of a cluster behaves.

Source: TensorFlow's message CoordinationServiceConfig (tsl/protobuf/coordination_config.proto).
"""

from __future__ import annotations

from collections.abc import Collection

from opkernel.records import dataclass


@dataclass(frozen=True)
class CoordinationConfig:
    """How the coordination service of a cluster behaves. Times are in seconds.

    Attributes:
        heartbeat_timeout_s: After this time without a heartbeat a task counts as dead; it sends two in this time.
        cluster_register_timeout_s: How long `wait_for_all_tasks` waits.
        shutdown_barrier_timeout_s: How long a task that shuts down waits for all others to do so; 0 for not at all.
        recoverable_jobs: Jobs whose tasks may fail, and connect again, without an error of the others.
    """

    heartbeat_timeout_s: float = 10.0
    cluster_register_timeout_s: float = 3600.0
    shutdown_barrier_timeout_s: float = 0.0
    recoverable_jobs: Collection[str] = ()
