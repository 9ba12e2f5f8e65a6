"""The step of summaries that are written without one, as in `tf.summary.experimental`."""

from opkernel.summary.writers import get_step, set_step

__all__ = ["get_step", "set_step"]
