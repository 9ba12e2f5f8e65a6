"""Shapes of the features of sound that have no kernel.

Source: TensorFlow lite/experimental/microfrontend/ops.
"""

from opkernel.opdef import InferenceContext, OpShapeInferenceFn

__all__ = ["SHAPE_FNS"]


def _microfrontend_shape(c: InferenceContext) -> None:
    """[samples] -> features [frames, channels], each with those of the frames around it.

    As in TensorFlow, a sound of unknown length counts as one that is shorter than a window.
    """
    samples = c.dim(c.with_rank(c.input(0), 1), 0)
    per_millisecond = _quotient(c.get_attr("sample_rate"), 1000)
    window = c.get_attr("window_size") * per_millisecond
    step = c.get_attr("window_step") * per_millisecond
    frames = c.make_dim(0)
    if samples.value >= window:
        frames = c.divide(c.subtract(samples, window), step, evenly_divisible=False)
        frames = c.add(c.divide(frames, c.get_attr("frame_stride"), evenly_divisible=False), 1)
    stacked = 1 + c.get_attr("left_context") + c.get_attr("right_context")
    features = c.multiply(c.make_dim(c.get_attr("num_channels")), stacked)
    c.set_output(0, c.matrix(frames, features))


def _quotient(dividend: int, divisor: int) -> int:
    """Division that rounds towards zero."""
    return dividend // divisor if dividend >= 0 else -(-dividend // divisor)


SHAPE_FNS: dict[str, OpShapeInferenceFn] = {"AudioMicrofrontend": _microfrontend_shape}
