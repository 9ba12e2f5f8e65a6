"""Step statistics and traces: what each node of a step took, and what that looks like.

`tracing_watcher` has nodes tell the `step_stats_collector`, which writes StepStats. `timeline` finds
out from StepStats, ours or TensorFlow's, what happened one within the other and side by side;
`trace_files` and `profile` show it. A `CostModel` sums it up as TensorFlow does.

Nothing here is imported before a step is traced.
"""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
