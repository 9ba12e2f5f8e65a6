"""value_and_grad: the value of a function of variables, and its gradients.

Source: TensorFlow python/eager/backprop.py (GradientTape), and jax.value_and_grad for the form.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from opkernel.errors import InvalidArgumentError
from opkernel.gradients import IndexedSlices, IndexedSlicesValue, gradients
from opkernel.graph import Tensor, function
from opkernel.graph.tracing.nested_structure import flatten
from opkernel.training.variable import Variable


def value_and_grad(
    fn: Callable[..., Any], variables: Iterable[Variable] | Variable | Any
) -> Callable[..., tuple[Any, list[Any]]]:
    """A function that gives the value of `fn`, and its gradients with respect to variables.

        loss_and_grads = opkernel.value_and_grad(lambda x, y: loss(model(x), y), model)
        loss, grads = loss_and_grads(x, y)

    `fn` is traced, as by `opkernel.function`. Gradients go through the functions that it calls, those of
    loaded models too.

    Args:
        fn: Gives a loss; or a tuple or list whose first element is one, and more that is passed on.
        variables: The variables, or an object with `trainable_variables`.

    Returns:
        A function of the arguments of `fn`: the value, and a list with a gradient for each variable. A gradient
        is an array, an IndexedSlicesValue where only rows of the variable were used, and None where the loss
        does not depend on the variable. A loss of several elements counts as their sum.

    Raises:
        InvalidArgumentError: there are no variables.
        TypeError: at a call, the loss is no tensor.
    """
    found = listed_variables(variables)

    def traced(*args: Any, **kwargs: Any) -> tuple[Any, list[Any]]:
        value = fn(*args, **kwargs)
        grads = gradients(_loss_in(value, fn), [variable.handle for variable in found])
        return value, [with_outputs(grad) for grad in grads]

    functools.update_wrapper(traced, fn, updated=())
    traced.__dict__.pop("__wrapped__", None)
    return function(traced, name=f"{getattr(fn, '__name__', 'function')}_and_grad")


def _loss_in(value: Any, fn: Any) -> Tensor:
    """The loss: the first tensor of what a function gave."""
    loss = next(iter(flatten(value)), None)
    if isinstance(loss, Variable):
        loss = loss.value
    if not isinstance(loss, Tensor):
        raise TypeError(
            f"{getattr(fn, '__name__', 'The function')} gives {type(loss).__name__} as its loss, and not a tensor "
            f"that was computed from its variables"
        )
    return loss


def listed_variables(variables: Any) -> list[Variable]:
    """The variables that are given, or the trainable ones of an object.

    Raises:
        InvalidArgumentError: there are none, or something else is among them.
    """
    if isinstance(variables, Variable):
        return [variables]
    found = [*getattr(variables, "trainable_variables", variables)]
    wrong = next((one for one in found if not isinstance(one, Variable)), None)
    if wrong is not None:
        raise InvalidArgumentError(
            f"Gradients are those of Variables, not of {type(wrong).__name__}"
        )
    if not found:
        raise InvalidArgumentError("There are no variables to train")
    return found


def with_outputs(grad: Any) -> Any:
    """IndexedSlices as functions give them; every other gradient as it is."""
    if isinstance(grad, IndexedSlices):
        return IndexedSlicesValue(grad.values, grad.indices, grad.dense_shape)
    return grad
