"""The kernel providers that come with opkernel, beside the reference kernels of `opkernel.ops`.

Importing this room registers them; their kernels are loaded when a node first needs one.
"""

from opkernel.kernel import KernelProvider, register_provider
from opkernel.providers.blas import BLAS

__all__ = ["BLAS", "LOOPS"]

LOOPS = KernelProvider(
    "loops",
    priority=20,
    library="numba",
    modules={
        f"{__name__}.loops.activations": (
            "SeluGrad",
            "SigmoidGrad",
            "Softplus",
            "Softsign",
            "TanhGrad",
        ),
        f"{__name__}.loops.arithmetic": ("Sign", "TruncateDiv"),
        f"{__name__}.loops.bfloat16": ("DivNoNan", "Xdivy"),
        f"{__name__}.loops.bounds": ("LowerBound", "UpperBound"),
        f"{__name__}.loops.boxes": ("NonMaxSuppression", "CombinedNonMax"),
        f"{__name__}.loops.hashes": (
            "Fingerprint",
            "StringToHashBucket",
            "SparseCross",
            "RaggedCross",
        ),
        f"{__name__}.loops.examples": ("ParseE", "ParseS", "ExperimentalParseE"),
        f"{__name__}.loops.web_base64": ("EncodeBase64", "DecodeBase64"),
        f"{__name__}.loops.characters": ("Substr",),
        f"{__name__}.loops.csv_fields": ("DecodeCSV",),
        f"{__name__}.loops.ctc_loss": ("CTCLoss",),
        f"{__name__}.loops.elimination": (
            "LogMatrixDeterminant",
            "Lu",
            "MatrixDeterminant",
            "MatrixInverse",
            "MatrixSolve",
        ),
        f"{__name__}.loops.float_functions": (
            "Acos",
            "Asin",
            "Atan",
            "Atanh",
            "BesselI",
            "BesselK",
            "Elu",
            "Erfc",
            "Erfinv",
            "Expint",
            "Expm1",
            "Log ",
            "Log1p",
            "Ndtri",
        ),
        f"{__name__}.loops.gamma_functions": ("Lgamma", "Zeta"),
        f"{__name__}.loops.half": (
            "DivNoNan",
            "FloorDiv",
            "FloorMod",
            "Inv",
            "Reciprocal",
            "TruncateDiv",
            "Xdivy",
        ),
        f"{__name__}.loops.incomplete_gamma": ("Igamma", "RandomGammaGrad"),
        f"{__name__}.loops.index_shuffle": ("RandomIndexShuffle",),
        f"{__name__}.loops.isotonic_regression": ("IsotonicRegression",),
        f"{__name__}.loops.log_sums": ("CumulativeLogsumexp",),
        f"{__name__}.loops.normals_between": (
            "ParameterizedTruncatedNormal",
            "StatelessParameterizedTruncatedNormal",
        ),
        f"{__name__}.loops.rejection": (
            "RandomGamma",
            "RandomPoisson",
            "StatefulRandomBinomial",
            "StatelessRandomBinomial",
            "StatelessRandomGamma",
            "StatelessRandomPoisson",
        ),
        f"{__name__}.loops.sparse_product": ("SparseMatrixSparseMatMul",),
        f"{__name__}.loops.sparse_messages": ("DeserializeManySparse", "DeserializeSparse"),
        f"{__name__}.loops.sparse_merge": ("SparseAdd", "SparseSlice", "SparseSparse"),
        f"{__name__}.loops.tridiagonal_elimination": ("BandedTriangular", "TridiagonalSolve"),
        f"{__name__}.loops.unique_rows": ("UniqueV2", "UniqueWithCountsV2"),
        f"{__name__}.loops.crops": ("CropAndResize",),
        f"{__name__}.loops.depthwise": ("Depthwise", "_FusedDepthwise"),
        f"{__name__}.loops.colors": ("AdjustContrastv2", "AdjustHue", "AdjustSaturation"),
        f"{__name__}.loops.resizing": ("ResizeArea", "ResizeBicubic", "ResizeBilinear"),
        f"{__name__}.loops.projections": ("ImageProjectiveTransform",),
        f"{__name__}.loops.multinomial": ("Multinomial", "StatelessMultinomial"),
        f"{__name__}.loops.outlines": ("DrawBoundingBoxes",),
        f"{__name__}.loops.pools": (
            "Dilation2DBackprop",
            "FractionalAvgPool",
            "FractionalMaxPool",
            "MaxPoolWithArgmax",
        ),
    },
)
"""Kernels as loops in Python, which Numba compiles."""

register_provider(BLAS)
register_provider(LOOPS)
