"""Functions of Python in graphs: `numpy_function` and `py_function`.

Source: TensorFlow python/ops/script_ops.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from opkernel import raw_ops
from opkernel.endpoints.tensors import DTypeLike, convert, is_symbolic
from opkernel.errors import OpError, UnimplementedError
from opkernel.gradients import Gradients, gradients, is_trainable, nodes, zeros_like
from opkernel.graph import Graph, Operation, Tensor, function
from opkernel.graph.core.default_graph import graph_of_call
from opkernel.graph.core.tensor import tensors_in
from opkernel.graph.tracing.nested_structure import flatten
from opkernel.messages import short_repr
from opkernel.ops.python_functions import PythonFunction
from opkernel.types import as_dtype

_Types = DTypeLike | Sequence[DTypeLike]


def numpy_function(
    func: Callable[..., Any] | None = None,
    inp: Sequence[Any] | None = None,
    Tout: _Types | None = None,  # noqa: N803  # the attr's name
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """Call a function of NumPy where a graph runs (tf.numpy_function).

        @opkernel.function
        def clipped(x):
            return opkernel.numpy_function(np.tanh, [x], opkernel.float32)

    The function runs in each step, on the CPU, with copies of the inputs. It is called at once where no graph is built.
    Its results have unknown shapes and no gradient. The graph can be saved, but runs only in this process.

    Args:
        func: Takes arrays, scalars of NumPy, and bytes. Gives an array of the type `Tout`, or a list of arrays. Without
            it, the result is a decorator.
        inp: The inputs.
        Tout: The types of the results; for one result its type.
        stateful: Whether calls with equal inputs may differ. If not, equal nodes are one.
        name: The name of the node.

    Returns:
        A tensor for a single type, otherwise a list.

    Raises:
        TypeError: `Tout` is missing, or `inp` is given without `func`.
        ValueError: `func` cannot be called.
        InvalidArgumentError: in a step, the results have other types, or the function raised a ValueError or TypeError.
            Other errors of the function have the codes that TensorFlow gives them.
    """
    if func is None:
        return _decorator(numpy_function, inp, Tout, stateful=stateful, name=name)
    inputs, types, is_list = _checked(func, inp, Tout)
    graph = graph_of_call(tensors_in(inputs))
    if graph is None:
        results = [
            one if one is None else convert(one)
            for one in flatten(func(*[convert(value) for value in inputs]))
        ]
        return results[0] if len(results) == 1 else results
    op = raw_ops.PyFunc if stateful else raw_ops.PyFuncStateless
    registered = PythonFunction(func)
    _keep(registered, graph)
    found = op(
        input=[convert(value) for value in inputs], token=registered.token, Tout=types, name=name
    )
    return found if is_list else found[0]


def py_function(
    func: Callable[..., Any] | None = None,
    inp: Sequence[Any] | None = None,
    Tout: _Types | None = None,  # noqa: N803  # the attr's name
    name: str | None = None,
) -> Any:
    """Call a function of Python where a graph runs (tf.py_function).

    Like `numpy_function`, but the results are converted to the types `Tout`, and there is a gradient. To compute the
    gradient, opkernel traces `func` with tensors in the place of arrays. So a function that has a gradient consists
    of functions of opkernel and operators, and no branch of it depends on a value.

    Args:
        func: Takes arrays, scalars of NumPy, and bytes. Gives a value for each type, in a list if there are
            several. Without it, the result is a decorator.
        inp: The inputs.
        Tout: The types of the results; for one result its type.
        name: The name of the node.

    Returns:
        A tensor for a single type, otherwise a list.

    Raises:
        TypeError: `Tout` is missing, or `inp` is given without `func`.
        ValueError: `func` cannot be called.
        InvalidArgumentError: in a step, a result cannot be converted, results are missing, or the function raised a
            ValueError or TypeError. Other errors of the function have the codes that TensorFlow gives them.
        UnimplementedError: in a step, the gradient is asked for, and `func` cannot be traced.
    """
    if func is None:
        return _decorator(py_function, inp, Tout, name=name)
    inputs, types, is_list = _checked(func, inp, Tout)
    registered = PythonFunction(func, _backward(func, types))
    graph = graph_of_call(tensors_in(inputs))
    if graph is not None:
        _keep(registered, graph)
    found = raw_ops.EagerPyFunc(
        input=[convert(value) for value in inputs], token=registered.token, Tout=types, name=name
    )
    return found if is_list else found[0]


def _decorator(of: Any, inp: Any, types: Any, **options: Any) -> Callable[..., Any]:
    if types is None:
        raise TypeError(f"{of.__name__} needs `Tout`: the types of the results")
    if inp is not None:
        raise TypeError(f"{of.__name__} as a decorator takes no `inp`: calls have the inputs")

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def call(*args: Any) -> Any:
            return of(func, list(args), types, **options)

        return call

    return decorate


def _checked(func: Any, inp: Any, types: Any) -> tuple[list[Any], list[Any], bool]:
    """The inputs, the types of the results, and whether these are a list."""
    if not callable(func):
        raise ValueError(  # noqa: TRY004  # as TensorFlow
            f"`func` must be callable, not {short_repr(func)}"
        )
    if types is None:
        raise TypeError("`Tout` must be given: the types of the results")
    if not isinstance(inp, list | tuple):
        raise TypeError(f"`inp` is a list of inputs, not {short_repr(inp)}")
    is_list = isinstance(types, list | tuple)
    return list(inp), [as_dtype(one) for one in (types if is_list else [types])], is_list


def _keep(registered: PythonFunction, graph: Graph | None) -> None:
    """Let a function live as long as one of the graphs that a node of it stands in."""
    while graph is not None:
        graph.function_library.kept[registered] = None
        graph = getattr(graph, "outer_graph", None)


def _backward(func: Callable[..., Any], types: list[Any]) -> Any:
    """What adds the gradient of a node: a node that traces the function, and runs the gradient of the trace."""

    def add(op: Operation, grads: Sequence[Tensor | None]) -> Gradients:
        places = [i for i, tensor in enumerate(op.inputs) if is_trainable(tensor)]
        given = [i for i, tensor in enumerate(op.outputs) if is_trainable(tensor)]
        inputs = [op.inputs[i] for i in places]
        dys = [zeros_like(op.outputs[i]) if grads[i] is None else grads[i] for i in given]
        traced = _traced_gradient(func, types, places, given)
        kinds = [tensor.dtype for tensor in inputs]
        registered = PythonFunction(traced, _backward(traced, kinds))
        _keep(registered, op.graph)
        made = nodes.EagerPyFunc([*op.inputs, *dys], token=registered.token, Tout=kinds)
        found = dict(zip(places, made, strict=True))
        return [found.get(i) for i in range(len(op.inputs))]

    return add


def _traced_gradient(
    func: Callable[..., Any], types: list[Any], places: list[int], given: list[int]
) -> Callable[..., Any]:
    """A function of the inputs and the gradients of outputs: the gradients of the inputs at `places`."""

    def derive(*values: Any) -> list[Any]:
        inputs, dys = values[: len(values) - len(given)], values[len(values) - len(given) :]
        returned = func(*inputs)
        outputs = returned if isinstance(returned, list | tuple) else [returned]
        ys = [convert(outputs[i], types[i]) for i in given]
        of_inputs = [inputs[i] for i in places]
        grads = gradients([*ys], of_inputs, grad_ys=[*dys])
        return [
            zeros_like(tensor) if grad is None else grad
            for tensor, grad in zip(of_inputs, grads, strict=True)
        ]

    traced = function(derive, name=f"{getattr(func, '__name__', 'function')}_gradient")

    def call(*values: Any) -> Any:
        if is_symbolic(*values):
            return derive(*values)
        try:
            return traced(*values)
        except OpError:
            raise
        except Exception as error:
            raise UnimplementedError(
                f"The gradient of a py_function needs a trace of its function, which does not work with "
                f"tensors: {type(error).__name__}: {error}"
            ) from error

    return call
