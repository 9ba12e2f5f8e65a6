"""Ray, the engine of all that runs on several machines (extra `opkernel[ray]`)."""

from __future__ import annotations

from typing import Any


def start_ray(ray: Any) -> bool:
    """Start Ray on this machine, unless it is initialised; whether it is for the caller to shut it down."""
    if ray.is_initialized():
        return False
    ray.init(include_dashboard=False, log_to_driver=False, logging_level="error")
    return True
