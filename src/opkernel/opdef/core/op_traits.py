"""`OpTraits`: facts that passes and shape inference may assume of an op, beyond its OpDef.

An op states its traits where it is declared: `register_op(..., traits="pointwise cannot_fail")`. For
the catalogue, `ops/catalogue.txt` lists them, too, so that reading an op's traits imports no op.

Source: TensorFlow core/grappler/op_types.cc, which has lists of names in their place.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from opkernel.errors import InvalidArgumentError

ValueRule: TypeAlias = str | Callable[..., Any]
"""A rule of `graph.inference.partial_values` by its name, or a function like these.

It takes an operation, the number of the output, and the known parts of the inputs: object arrays of
ints, of dimensions whose size is not known, and of None; with `reads_shapes_only`, ShapeHandles.
"""

Calls: TypeAlias = Literal["", "case", "function", "gradient", "if", "while"]
Cost: TypeAlias = Literal["", "convolution", "linear", "product", "series", "sort"]
Clustering: TypeAlias = Literal[
    "", "assertion", "dynamic", "inaccurate", "slow", "stack", "stateful_random", "tensor_array"
]


class OpTraits(NamedTuple):
    """The facts that may be assumed of an op; by default none.

    Attributes:
        pointwise: an element of the output follows from the elements at its place in the inputs, which
            are broadcast against each other.
        passes_on: the output is the first input as it is, and nothing else happens.
        reshapes: the output has the elements of the first input, in their order.
        reduces: the first input is folded over the axes that the second holds; `keep_dims` is an attr.
        cannot_fail: the op refuses no values, and only shapes that the shape function refuses once
            they are known.
        reads_shapes_only: only the shapes of the inputs count.
        cheap: it takes no longer than to copy its inputs.
        involution: f(f(x)) = x.
        idempotent: f(f(x)) = f(x).
        even: f(-x) = f(x).
        growing: f(x) <= f(y) for x <= y, and there is an f(x).
        not_negative: no element of the output is negative, or -0.0.
        keeps_not_negative: the same, where no element of the inputs of the output's type is negative.
        images: which inputs, and after a colon whether the first output, have the layout that the attr `data_format`
            names. Each is one character of, say, "s-i:i": "i" for images or volumes, "?" for images where the rank is
            theirs, "s" for the shape of an image, "-" for others. The last character before the colon stands for all
            further inputs, too. `strides`, `ksize` and `dilations` have a number for each dimension.
        debug_only: it watches over values; an op with outputs gives its first input as the only one.
        only_reads_state: it reads state and changes none.
        state_of_step: only ops of its kind, in the same step, see its changes.
        has_no_effect: it is stateful or takes references, but neither reads nor changes anything.
        any_order: it is stateful, but may run before or after others, whatever order the program sets.
        reads_files, writes_files: it opens the files that its inputs or attrs name.
        file_attr: the attr that names these files, where no input does; an empty one names none.
        uses_network: it talks to other processes that its inputs or attrs name.
        runs_python: it calls a function of the Python program.
        calls_host: a compiled program calls the program that has started it, or waits for it.
        initializes_table: it fills the table that its first input refers to.
        calls: how it calls the functions in its attrs: "function" calls `f` with all inputs, "if" and
            "case" choose by the first input, "while" has `cond` and `body`.
        value_rule: infers integers from integers that are known in part; with `reads_shapes_only`, from
            shapes. An input that is passed on needs no rule.
        item_rule: infers the items of a list of tensors, or from such a list: a rule of
            `graph.inference.whole_graph_refiner`.
        row_rule: tells when each row of the outputs follows from the same row of the inputs: a rule of
            `runtime.engines.batches`.
        cost: what its time follows from: "linear" in the sizes of inputs and outputs, "product" of matrices,
            "convolution", "sort", "series" (many terms for each element); else nothing is known.
        mostly_copies: its outputs may share memory with inputs, but mostly do not.
        int32_on_host: its kernels of int32 for GPUs compute in host memory.
        clustering: why automatic clusters leave it out unless their filter allows it.
        function_gradient: its gradient within functions, of those that TensorFlow's C++ knows: "yes" or "none" (it is
            zero). Functions have no gradient of other ops of the catalogue.
        extra: the extra of opkernel with the library that its kernel needs.
        extra_when: which nodes need it: all, those whose attrs ask for it ("attrs": the kernel's constructor then raises
            UnimplementedError without the library), or those that get certain inputs ("inputs").
        no_kernel: a key of `WHY_NO_KERNEL`, where the op has no kernel, or one that refuses everything.
    """

    pointwise: bool = False
    passes_on: bool = False
    reshapes: bool = False
    reduces: bool = False
    cannot_fail: bool = False
    reads_shapes_only: bool = False
    cheap: bool = False
    involution: bool = False
    idempotent: bool = False
    even: bool = False
    growing: bool = False
    not_negative: bool = False
    keeps_not_negative: bool = False
    images: str = ""
    debug_only: bool = False
    only_reads_state: bool = False
    state_of_step: bool = False
    has_no_effect: bool = False
    any_order: bool = False
    reads_files: bool = False
    writes_files: bool = False
    file_attr: str = ""
    uses_network: bool = False
    runs_python: bool = False
    calls_host: bool = False
    initializes_table: bool = False
    calls: Calls = ""
    value_rule: ValueRule = ""
    item_rule: str = ""
    row_rule: str = ""
    cost: Cost = ""
    mostly_copies: bool = False
    int32_on_host: bool = False
    clustering: Clustering = ""
    function_gradient: Literal["", "none", "yes"] = ""
    extra: str = ""
    extra_when: Literal["", "attrs", "inputs"] = ""
    no_kernel: str = ""

    @property
    def chooses_function(self) -> bool:
        """Whether the first input says which function is called, and is not passed on to it."""
        return self.calls in ("case", "if")

    @property
    def is_linear(self) -> bool:
        """Whether it takes time in proportion to the sizes of its inputs and outputs."""
        linear = self.pointwise or self.cheap or self.reduces or self.reshapes
        return self.cost == "linear" or (linear and not self.cost)

    @property
    def why_no_kernel(self) -> str:
        """A sentence without subject and full stop; empty where nothing speaks against a kernel."""
        return WHY_NO_KERNEL[self.no_kernel] if self.no_kernel else ""

    def words(self) -> str:
        """The traits as words: `pointwise calls=while`; none for a rule that is a function."""
        given = [(name, value) for name, value in zip(self._fields, self, strict=True) if value]
        return " ".join(
            name if value is True else f"{name}={value}"
            for name, value in given
            if isinstance(value, bool | str)
        )

    def __repr__(self) -> str:
        given = zip(self._fields, self, strict=True)
        return f"OpTraits({', '.join(f'{name}={value!r}' for name, value in given if value)})"

    @staticmethod
    @functools.cache
    def from_words(words: str) -> OpTraits:
        """The traits that words name.

        Raises:
            InvalidArgumentError: there is no such trait, or its word wants a value or has none to take.
        """
        given: dict[str, Any] = {}
        for word in words.split():
            name, _, value = word.partition("=")
            default = NO_TRAITS._asdict().get(name)
            if default is None or bool(value) != isinstance(default, str):
                known = ", ".join(OpTraits._fields)
                raise InvalidArgumentError(f"There is no trait {word!r}; the traits are {known}")
            given[name] = value or True
        return OpTraits(**given)


WHY_NO_KERNEL: Mapping[str, str] = {
    "boosted_trees": "TensorFlow has dropped its kernels for boosted trees",
    "calibration": "it writes statistics for TensorFlow's quantizer of models, which opkernel does not have",
    "cudnn": "needs cuDNN",
    "data_model": "tf.data's autotuner has a model of the pipeline, opkernel has none",
    "data_service": "needs tf.data's service, a peer process of TensorFlow's own runtime",
    "distributed_runtime": "part of TensorFlow's distributed runtime",
    "jxl": "no decoder of JPEG XL is among the libraries that opkernel uses",
    "lmdb": "TensorFlow has removed its support of LMDB: convert the database to TFRecords",
    "onednn": "TensorFlow has it by oneDNN only, whose fused quantised products opkernel does not imitate",
    "onednn_graph": "TensorFlow's own graphs for oneDNN have it, files do not",
    "risc": "TensorFlow has no kernels of it",
    "tensorboard_database": "TensorBoard has dropped its databases, and reads event files only",
    "tensorflow": "TensorFlow has no CPU kernel of it either",
    "tests": "TensorFlow's own tests have it, models do not",
    "tpu": "needs a TPU",
    "word2vec": (
        "TensorFlow has dropped its ops for word2vec: graphs of version 19 and later may not have them; compute "
        "skip-grams in Python"
    ),
    "xla_custom_call": "it would have a model name any code of the process",
    "xla_devices": "part of XLA's programs for several devices, or for a device and its host",
    "xla_dynamic_sizes": "JAX, through which XLA is reached, has no sizes that the program decides",
    "xla_passes": "TensorFlow's passes put it into graphs when they run, files do not have it",
}
"""Why ops have no kernel. Source: the kernels that TensorFlow 2.21 registers for CPUs."""

NO_TRAITS = OpTraits()
"""The traits of unknown ops: none."""
