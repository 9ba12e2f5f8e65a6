"""Execution: from a graph to numbers."""

from opkernel.runtime.device import CPU, LocalDevice
from opkernel.runtime.eager import execute
from opkernel.runtime.plan import CompiledPlan
from opkernel.runtime.session import RunOptions, Session

__all__ = ["CPU", "CompiledPlan", "LocalDevice", "RunOptions", "Session", "execute"]
