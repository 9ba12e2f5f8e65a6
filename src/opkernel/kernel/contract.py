"""KernelContract: the claims of a kernel, which save executors from looking.

Rights come from claims, the same for the kernels of the catalogue and for anybody's. Where a kernel
claims nothing, all that it gives is checked at every call, in every way of calling
(`verification`). A claim is believed at run time; `opkernel test`,
`Session(sanitize=True)` and OPKERNEL_CHECK_CONTRACTS=1 verify it.
"""

from __future__ import annotations

from typing import Literal, get_args

from opkernel.errors import InvalidArgumentError
from opkernel.records import dataclass, replace

Kind = Literal["elementwise", "same_shapes", "view", "opaque"]
"""The commonest claims in one word: `elementwise`, of any shapes or of one; `may_alias` of all inputs; none."""


@dataclass(frozen=True, slots=True)
class KernelContract:
    """The claims of a kernel, its requests, and its hints.

    Executors rely on claims, the first seven. Hints, the last two, can change nothing but speed.

    Attributes:
        outputs_as_declared: The kernel gives all outputs that its op declares, as arrays of the declared
            types and of the shape function's shapes. They are in new memory but for `may_alias`. The
            kernel leaves its inputs alone.
        elementwise: The kernel is a function with one output. Inputs are broadcast as NumPy broadcasts
            them. Each element of the result depends on the elements at its place alone, whatever the ranks
            and sizes. The result is new memory. So executors may compute it part by part.
        same_shapes: The kernel is elementwise where the inputs have one shape. It may refuse other inputs,
            or treat them otherwise.
        takes_out: The kernel is a function that takes the keyword `out`: an array of the result's shape and
            type, which may be one of the inputs. The kernel fills and returns `out`. Ufuncs need not say so.
        may_alias: The pairs of an output and an input argument, by name, that may share memory; True
            for all pairs. Other outputs are new memory. None means no pair for a function, and all pairs
            for a class, which may set an input as its output as in TensorFlow.
        forwards_inputs: `compute` may take over buffers of inputs: those that `forward_input` gives it, and
            no others. Its outputs are the same then. The executor hands it the last references to its
            inputs. A class may say so by its attribute `forwards_inputs`.
        ignores_call: The kernel asks its context neither for the `call_frame` nor for the `executor_type`,
            so that calls of functions need no step of their own.
        prepares: The input arguments, by name, whose lasting values the kernel has its provider prepare
            (`KernelProvider.prepared`).
        expensive: Whether the kernel is worth a thread of its own; None where executors must guess.
        releases_gil: Whether the kernel gives up Python's lock while it works.
    """

    outputs_as_declared: bool = False
    elementwise: bool = False
    same_shapes: bool = False
    takes_out: bool = False
    may_alias: bool | frozenset[tuple[str, str]] | None = None
    forwards_inputs: bool = False
    ignores_call: bool = False
    prepares: tuple[str, ...] = ()
    expensive: bool | None = None
    releases_gil: bool = False

    def of_kind(self, kind: Kind) -> KernelContract:
        """The contract with the claim of a kind added; InvalidArgumentError for a word that is no kind."""
        if kind in ("elementwise", "same_shapes"):
            return replace(self, elementwise=True, same_shapes=kind == "same_shapes")
        if kind == "view":
            return replace(self, may_alias=True)
        if kind != "opaque":
            kinds = ", ".join(get_args(Kind))
            raise InvalidArgumentError(f"{kind!r} is no kind of kernel; there are {kinds}")
        return self


UNCLAIMED = KernelContract()
"""The contract of a kernel that claims nothing."""
