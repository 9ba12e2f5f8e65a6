"""Which kernel provider computes a node, which were asked, and why the earlier ones decline."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from opkernel.cli.kernel_choice import KernelChoice
from opkernel.kernel import (
    REFERENCE,
    KernelProvider,
    KernelRegistration,
    NodeProperties,
    registered_providers,
)
from opkernel.opdef import in_out_types_for_node
from opkernel.types import PartialTensorShape


@dataclass(frozen=True)
class AskedProvider:
    """A provider, and its answer for a node.

    Attributes:
        name: its name.
        priority: its priority.
        kernel: the kernel that it has for the node; empty for none.
        prepares: the inputs that this asks to be prepared where they stay from step to step.
        verdict: the answer.
        is_chosen: whether it computes the node.
    """

    name: str
    priority: int
    kernel: str
    prepares: Sequence[str]
    verdict: str
    is_chosen: bool


def asked_providers(
    choice: KernelChoice,
    providers: Sequence[KernelProvider],
    shapes: Sequence[PartialTensorShape] | None,
) -> list[AskedProvider]:
    """The answers of all providers for the kernel of a node.

    Args:
        choice: the choice among the reference kernels.
        providers: the providers to ask, in turn.
        shapes: the shapes of the node's inputs, as far as known; None for unknown ones.

    Returns:
        The providers that are asked, in turn; then all others.
    """
    if choice.chosen is None:  # without a reference kernel no provider has one
        return []
    found = list(_asked(choice, providers, shapes))
    others = [one for one in registered_providers() if one not in providers]
    return [*found, *(_not_asked(one) for one in others)]


def _asked(
    choice: KernelChoice,
    providers: Sequence[KernelProvider],
    shapes: Sequence[PartialTensorShape] | None,
) -> Iterator[AskedProvider]:
    chosen = ""
    for provider in providers:
        registration, verdict = _kernel_of(choice, provider, shapes)
        if chosen:
            verdict = f"not asked: {chosen} computes it"
        elif not verdict:
            chosen = provider.name
        yield AskedProvider(
            provider.name,
            provider.priority,
            "" if registration is None else registration.class_name,
            () if registration is None else registration.contract.prepares,
            verdict or "chosen",
            not verdict,
        )


def _kernel_of(
    choice: KernelChoice,
    provider: KernelProvider,
    shapes: Sequence[PartialTensorShape] | None,
) -> tuple[KernelRegistration | None, str]:
    """The kernel that a provider has for the node, and why it does not compute the node: or nothing."""
    assert choice.chosen is not None
    if provider.name == REFERENCE:
        return choice.chosen.registration, ""
    op = choice.node_def.op
    registration = provider.registration(choice.device_type, choice.node_def)
    if registration is None:
        candidates = choice.candidates_of(provider.kernels)
        if not candidates:
            return None, f"has no kernel of {op}"
        nearest = min(candidates, key=lambda one: len(one.failing))
        told = ", ".join(f"{one.subject} = {one.value or 'none'}" for one in nearest.failing)
        return None, f"its kernel is not for {told}"
    inputs, outputs = in_out_types_for_node(choice.node_def, choice.op_def)
    node = NodeProperties.of(choice.node_def, choice.op_def, inputs, outputs)
    known = [PartialTensorShape(None)] * len(inputs) if shapes is None else shapes
    refusal = "" if provider.supports(node, known) else "does not support it"
    return registration, refusal


def _not_asked(provider: KernelProvider) -> AskedProvider:
    why = "not among those to be asked" if provider.is_available() else "not available here"
    return AskedProvider(provider.name, provider.priority, "", (), why, False)
