"""`function`: Python that is traced into graphs, once for each signature that it is called with.

State: a Function keeps what it has traced outside of all graphs; a graph keeps the traces of the
functions that were called while it was built, since they may hold its tensors.

Source: TensorFlow python/eager/polymorphic_function/polymorphic_function.py, tracing_compilation.py.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import threading
import weakref
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

import numpy as np

from opkernel.graph.core.default_graph import graph_of_call, innermost_default
from opkernel.graph.core.graph import Graph
from opkernel.graph.core.tensor import tensors_in
from opkernel.graph.tracing.call_signature import BoundCall, CallBinder, CallSignature
from opkernel.graph.tracing.concrete_function import ConcreteFunction
from opkernel.graph.tracing.func_graph import FuncGraph, function_name
from opkernel.graph.tracing.tensor_spec import TensorSpec
from opkernel.tracebacks import entrances, hide_frames

_tracing = threading.RLock()
"""Held while a function is traced: functions of two threads may call each other's."""

_MAX_KEPT = 4096

_Run = Callable[[Sequence[Any]], Any]

_P = ParamSpec("_P")
_OfMethod = ParamSpec("_OfMethod")
_Instance = TypeVar("_Instance")
_R = TypeVar("_R")


class _Traces:
    """The traces of one function for one outermost graph, or for calls outside of all.

    Attributes:
        by_signature: each signature that was called, with the trace that serves it.
        traced: the traces themselves.
        quick: what runs calls with nothing but arrays, by their types and shapes.
        under_way: the signatures that are being traced.
    """

    def __init__(self) -> None:
        self.by_signature: dict[CallSignature, ConcreteFunction] = {}
        self.traced: list[ConcreteFunction] = []
        self.quick: dict[Any, _Run] = {}
        self.under_way: list[CallSignature] = []

    def find(self, signature: CallSignature) -> ConcreteFunction | None:
        """The most special trace that serves a signature."""
        concrete = self.by_signature.get(signature)
        if concrete is None:
            fit = [c for c in self.traced if c.signature.includes(signature)]
            concrete = min(fit, key=lambda c: c.signature.unknowns, default=None)
            if concrete is not None:
                _keep(self.by_signature, signature, concrete)
        return concrete

    def generalised(self, signature: CallSignature) -> CallSignature:
        """The signature, with shapes relaxed to serve the earlier traces, too."""
        for concrete in self.traced:
            signature = signature.generalised(concrete.signature)
        return signature


@entrances
class Function(Generic[_P, _R]):
    """A Python function that runs as a graph. Made by `function`.

    It has the signature, name and documentation of the function, for type checkers, too.

    Attributes:
        python_function: the function itself.
        input_signature: the specs of its first arguments, where they are fixed.
    """

    __name__: str
    __wrapped__: Callable[_P, _R]

    def __init__(
        self,
        python_function: Callable[_P, _R],
        input_signature: Sequence[Any] | None = None,
        *,
        reduce_retracing: bool = False,
        name: str | None = None,
        jit_compile: bool = False,
    ) -> None:
        functools.update_wrapper(self, python_function)
        self.python_function = python_function
        self.input_signature = None if input_signature is None else tuple(input_signature)
        self._reduce_retracing, self._jit_compile = reduce_retracing, jit_compile
        self._name = function_name(name or getattr(python_function, "__name__", None) or "function")
        self._traces = _Traces()
        self._instances: dict[int, tuple[Any, _Traces]] = {}
        self._method_binder: CallBinder | None = None

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Call it.

        With arrays it runs at once and gives arrays. Where a graph is being built, or an argument
        is a tensor of a graph, it becomes a node there and gives tensors.

        Raises:
            TypeError: the arguments do not fit.
            RecursionError: it is being traced for the same arguments.
            OpError: as its operations raise.
        """
        try:
            values: tuple[Any, ...] = args
            result: _R
            if not kwargs and innermost_default() is None:
                try:
                    run = self._traces.quick[tuple([(a.dtype, a.shape) for a in values])]
                except (AttributeError, KeyError, TypeError):
                    pass  # not yet traced, or arguments that are no arrays
                else:
                    result = run(values)
                    return result
            call = self._binder.bind(values, kwargs)
            graph = graph_of_call(tensors_in(call.tensors))
            concrete = self._concrete(call, graph)
            if graph is not None:
                result = concrete.call_in(graph, call.tensors)
                return result
            if not kwargs and _are_plain(values, call.tensors):
                _keep(self._traces.quick, tuple([(a.dtype, a.shape) for a in values]), concrete.run)
            result = concrete.run(call.tensors)
            return result
        except Exception as error:
            hide_frames(error)
            raise

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The trace for certain arguments, made if there is none.

        Args:
            args: TensorSpecs, or what the function is called with; nothing where the input
                signature says it all.
            kwargs: the same by keyword.
        """
        if not args and not kwargs and self.input_signature is not None:
            args = self.input_signature
        call = self._binder.bind(args, kwargs)
        return self._concrete(call, graph_of_call(tensors_in(call.tensors)))

    @property
    def concrete_functions(self) -> list[ConcreteFunction]:
        """The traces made outside of all graphs, in order."""
        return list(self._traces.traced)

    def experimental_get_tracing_count(self) -> int:
        """How often it was traced outside of all graphs."""
        return len(self._traces.traced)

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Function[_P, _R]: ...

    @overload
    def __get__(
        self: Function[Concatenate[_Instance, _OfMethod], _R],
        instance: _Instance,
        owner: type | None = None,
    ) -> Function[_OfMethod, _R]: ...

    def __get__(self, instance: Any, owner: type | None = None) -> Function[..., _R]:
        """The function of an instance; each has traces of its own, which end with it."""
        if instance is None:
            return self
        method: Function[..., _R] = Function.__new__(Function)  # a copy, at every call of a method
        bound = MethodType(self.python_function, instance)
        method.__dict__.update(self.__dict__, python_function=bound, __wrapped__=bound)
        method._traces = self._traces_of(instance)
        if self._method_binder is None:
            self._method_binder = CallBinder(method.python_function, self.input_signature)
        method._binder = self._method_binder
        return method

    def _traces_of(self, instance: Any) -> _Traces:
        number = id(instance)
        known = self._instances.get(number)
        if known is None:
            keeper: Any = instance
            with contextlib.suppress(TypeError):  # it may have no place for weak references
                keeper = weakref.ref(instance, lambda _: self._instances.pop(number, None))
            known = self._instances[number] = keeper, _Traces()
        return known[1]

    @functools.cached_property
    def _binder(self) -> CallBinder:
        return CallBinder(self.python_function, self.input_signature)

    def _concrete(self, call: BoundCall, graph: Graph | None) -> ConcreteFunction:
        traces = self._traces_for(graph)
        concrete = traces.find(call.signature)
        if concrete is not None:
            return concrete
        with _tracing:
            return traces.find(call.signature) or self._trace(call, graph, traces)

    def _traces_for(self, graph: Graph | None) -> _Traces:
        """The traces that may be used while a graph is being built."""
        while isinstance(graph, FuncGraph):
            graph = graph.outer_graph
        return self._traces if graph is None else graph.traces.setdefault(self._traces, _Traces())

    def _trace(self, call: BoundCall, graph: Graph | None, traces: _Traces) -> ConcreteFunction:
        if call.signature in traces.under_way:
            raise RecursionError(
                f"{self._name}({call}) calls itself with the arguments that it is being traced for: "
                f"that would never end. Use opkernel.while_loop, or a Python value that changes"
            )
        if self._reduce_retracing:
            call = dataclasses.replace(call, signature=traces.generalised(call.signature))
        body = FuncGraph(
            name=self._name,
            outer_graph=graph,
            label=f"{self._name}({call})",
            is_called_by_name=True,
        )
        tensors = [body.add_input(spec, name) for name, spec in call.named_specs()]
        specs = [TensorSpec(t.shape, t.dtype, t.op.name) for t in tensors]
        body.structured_input_signature = call.arguments_with(specs)
        args, kwargs = call.arguments_with(tensors)
        try:
            traces.under_way.append(call.signature)
            body.trace(self.python_function, *args, **kwargs)
        finally:
            traces.under_way.pop()
        body.jit_compile = self._jit_compile
        body.close()
        concrete = ConcreteFunction(body, call.signature, self._binder)
        traces.traced.append(concrete)
        _keep(traces.by_signature, call.signature, concrete)
        return concrete

    def __repr__(self) -> str:
        return f"<opkernel.Function {self._name!r}>"


def _keep(known: dict[Any, Any], key: Any, value: Any) -> None:
    """Remember what can be found again; not without end, where shapes never repeat."""
    if len(known) >= _MAX_KEPT:
        known.clear()
    known[key] = value


def _are_plain(args: Sequence[Any], tensors: Sequence[Any]) -> bool:
    """Whether the arguments are the tensors, and types and shapes tell all of them."""
    return len(args) == len(tensors) and all(
        arg is tensor and isinstance(arg, np.ndarray | np.generic) and arg.dtype != object
        for arg, tensor in zip(args, tensors, strict=True)
    )


@overload
def function(
    func: Callable[_P, _R],
    input_signature: Sequence[Any] | None = None,
    reduce_retracing: bool = False,
    name: str | None = None,
    jit_compile: bool = False,
) -> Function[_P, _R]: ...


@overload
def function(
    func: None = None,
    input_signature: Sequence[Any] | None = None,
    reduce_retracing: bool = False,
    name: str | None = None,
    jit_compile: bool = False,
) -> Callable[[Callable[_P, _R]], Function[_P, _R]]: ...


def function(
    func: Callable[..., Any] | None = None,
    input_signature: Sequence[Any] | None = None,
    reduce_retracing: bool = False,
    name: str | None = None,
    jit_compile: bool = False,
) -> Any:
    """Make a Python function run as a graph; also to be used as a decorator, with arguments or not.

    The function is traced, that is run with tensors in the place of arrays, once for each
    combination of types and shapes of its arrays and values of its other arguments.

        @opkernel.function
        def norm(x):
            return opkernel.raw_ops.Sqrt(x=opkernel.raw_ops.Sum(input=x * x, axis=0))

    Args:
        func: the function.
        input_signature: TensorSpecs for its first arguments; calls must fit, and are all served by
            one trace.
        reduce_retracing: a second trace for other shapes is made for all shapes that both fit.
        name: what its name in graphs begins with; the Python name if there is none.
        jit_compile: XLA compiles it for each combination of shapes that Python calls it with (extra
            `opkernel[xla]`). Where it is a node of a graph, it runs as other functions do.
    """

    def make(python_function: Callable[..., Any]) -> Function[..., Any]:
        return Function(
            python_function,
            input_signature,
            reduce_retracing=reduce_retracing,
            name=name,
            jit_compile=jit_compile,
        )

    return make if func is None else make(func)
