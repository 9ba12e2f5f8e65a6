"""Gradient of RaggedTensorToTensor: a value has that of its place, the default those of the others."""

import opkernel.gradients as g


@g.register_gradient("RaggedTensorToTensor")
def ragged_tensor_to_tensor_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    values, default, partitions = op.inputs[1], op.inputs[2], list(op.inputs[3:])
    kinds = op.get_attr("row_partition_types")
    ragged_rank = sum(kind not in ("FIRST_DIM_SIZE", b"FIRST_DIM_SIZE") for kind in kinds)
    count = g.nodes.GatherV2(g.nodes.Shape(values), 0, 0)
    numbers = g.nodes.RaggedTensorToTensor(
        g.nodes.Slice(g.nodes.Shape(grad), [0], [ragged_rank + 1]),
        g.nodes.Range(0, count, 1),
        -1,
        partitions,
        row_partition_types=kinds,
    )
    places = g.nodes.Reshape(numbers, [-1])
    inner = g.nodes.Slice(g.nodes.Shape(values), [1], [-1])
    rows = g.nodes.Reshape(grad, g.nodes.ConcatV2([[-1], inner], 0))
    by_values = g.nodes.UnsortedSegmentSum(rows, places, count)
    no_value = g.nodes.Less(places, 0)
    mask = g.nodes.Reshape(
        no_value, g.nodes.ConcatV2([[-1], g.nodes.Fill(g.nodes.Shape(inner), 1)], 0)
    )
    unused = g.nodes.SelectV2(mask, rows, g.zeros_like(rows))
    _, by_default = g.sum_to_operands(rows, default, None, unused)
    return None, by_values, by_default, *[None] * len(partitions)
