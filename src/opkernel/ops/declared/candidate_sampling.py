"""Shapes of samplers of classes, and of training with negative samples.

Source: TensorFlow core/ops/candidate_sampling_ops.cc, word2vec_ops.cc.
"""

from opkernel.opdef import InferenceContext, OpShapeInferenceFn
from opkernel.opdef.common_shapes import no_outputs
from opkernel.ops.declared.rules import check_ranks, set_outputs

__all__ = ["SHAPE_FNS"]


def _candidate_sampler_shape(c: InferenceContext) -> None:
    """True classes [batch, true] -> the sampled, and how often each of both is expected."""
    sampled = c.vector(c.get_attr("num_sampled"))
    batch = c.dim(c.with_rank(c.input(0), 2), 0)
    set_outputs(c, [sampled, c.matrix(batch, c.get_attr("num_true")), sampled])


def _compute_accidental_hits_shape(c: InferenceContext) -> None:
    """True classes [batch, true] and sampled ones -> three vectors with a value for each hit."""
    c.with_value(c.dim(c.with_rank(c.input(0), 2), 1), c.get_attr("num_true"))
    check_ranks(c, 1, 1)
    set_outputs(c, [c.vector(None)] * 3)


SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    **dict.fromkeys(
        (
            "AllCandidateSampler",
            "FixedUnigramCandidateSampler",
            "LearnedUnigramCandidateSampler",
            "LogUniformCandidateSampler",
            "ThreadUnsafeUnigramCandidateSampler",
            "UniformCandidateSampler",
        ),
        _candidate_sampler_shape,
    ),
    "ComputeAccidentalHits": _compute_accidental_hits_shape,
    "NegTrain": no_outputs,
}
