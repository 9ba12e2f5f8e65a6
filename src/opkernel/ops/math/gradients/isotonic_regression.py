"""The gradient of IsotonicRegression: the mean of the gradients of each segment."""

import opkernel.gradients as g


@g.register_gradient("IsotonicRegression")
def isotonic_regression_gradient(op: g.Operation, grad: g.Tensor, _: g.Tensor) -> g.Gradients:
    segments = op.outputs[1]
    if segments.shape.rank == 0:
        return grad
    shape = g.nodes.Shape(segments)
    length = g.nodes.StridedSlice(shape, [-1], [0], [1], end_mask=1, shrink_axis_mask=1)
    count = g.nodes.Size(segments)
    # Segments of a row are numbered from the place of its first element on.
    places = g.nodes.Range(0, count, 1)
    starts = g.nodes.Sub(places, g.nodes.FloorMod(places, length))
    numbers = g.nodes.Add(starts, g.nodes.Reshape(segments, [-1]))
    flat = g.nodes.Reshape(grad, [-1])
    sums = g.nodes.UnsortedSegmentSum(flat, numbers, count)
    sizes = g.nodes.UnsortedSegmentSum(g.ones_like(flat), numbers, count)
    means = g.nodes.DivNoNan(sums, sizes)
    found = g.nodes.Reshape(g.nodes.GatherV2(means, numbers, 0), shape)
    return g.nodes.Cast(found, DstT=op.inputs[0].dtype)
