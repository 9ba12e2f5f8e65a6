"""DirectSession: a session in the form of TensorFlow's C++ API, which takes GraphDefs and names.

It checks a whole graph before any of it runs, as TensorFlow does: devices, functions, kernels.

Source: TensorFlow core/common_runtime/direct_session.cc, core/public/session.h, and for the checks
core/common_runtime/placer.cc, colocation_graph.cc, inspecting_placer.cc.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from opkernel.device.local_device import DeviceAttributes
from opkernel.errors import (
    AlreadyExistsError,
    CancelledError,
    FailedPreconditionError,
    InvalidArgumentError,
)
from opkernel.graph import Graph, Operation, Tensor, import_graph_def
from opkernel.graph.core.tensor_name import CONTROL_SLOT, format_input, parse_input
from opkernel.graph.functions.calls import is_lowered
from opkernel.graph.io.versions import merge_versions
from opkernel.interrupts import Closing
from opkernel.kernel import get_registered_kernels_for_op, supported_device_types_for_node
from opkernel.kernel.registry.lookup import no_supported_device_error
from opkernel.proto import GraphDef, Message
from opkernel.records import replace
from opkernel.runtime.placement.placer import DeviceSet
from opkernel.runtime.plan.functional_ops import RUN_BY_EXECUTORS
from opkernel.runtime.session.executables import LruCache
from opkernel.runtime.session.session import Session
from opkernel.runtime.session.session_config import (
    AnyCallableOptions,
    AnyConfig,
    AnyRunOptions,
    CallableOptions,
    SessionConfig,
)
from opkernel.runtime.session.step_signature import StepSignature, connected
from opkernel.tracebacks import entrances

Feeds = Mapping[str, Any] | Sequence[tuple[str, Any]]


@entrances
class DirectSession(Closing):
    """Runs a graph that is given as a message, by the names in the message.

        session = opkernel.DirectSession()
        session.create(graph_def)
        (y,) = session.run({"x": x}, ["y"])

    As in TensorFlow, the whole graph must fit the existing devices, functions and kernels. With
    `place_pruned_graph`, only the nodes that a step needs must. Values need not have the shapes of the tensors
    that they are fed for. A DirectSession may be used from many
    threads.

    Args:
        config: a SessionConfig, or TensorFlow's ConfigProto.
        memory_limit_bytes: as for Session.
        sanitize: as for Session.

    Raises:
        InvalidArgumentError, NotFoundError: the config makes no sense.
    """

    def __init__(
        self,
        config: AnyConfig | None = None,
        *,
        memory_limit_bytes: int | None = None,
        sanitize: bool = False,
    ) -> None:
        given = SessionConfig() if config is None else SessionConfig.of(config)
        self._config = replace(given, checks_feed_shapes=False)
        self._session = Session(
            Graph(), config=self._config, memory_limit_bytes=memory_limit_bytes, sanitize=sanitize
        )
        self._lock = threading.Lock()
        self._is_created = False
        self._is_finalized = False
        self._signatures = LruCache[Hashable, StepSignature](self._config.max_executables)

    # The graph.

    def create(self, graph_def: GraphDef) -> None:
        """Take the graph; one without nodes is none yet. On an error there is no graph.

        Raises:
            AlreadyExistsError: there is one already.
            InvalidArgumentError: a node breaks a rule, or lacks its device, function or kernel.
            NotFoundError: an op is not registered.
            CancelledError: the session is closed.
        """
        with self._lock:
            if not graph_def.node:
                return
            if self._is_created:
                raise AlreadyExistsError("A Graph has already been created for this session.")
            self._check_open()
            graph = Graph()
            self._import(graph, graph_def)
            self._session._set_graph(graph)
            self._is_created = True

    def extend(self, graph_def: GraphDef) -> None:
        """Add to the graph, or take the first one. On an error nothing changes.

        Raises:
            FailedPreconditionError: the config does not say `disable_optimize_for_static_graph`,
                so the graph is taken to stay as it is; or the session was finalized.
            InvalidArgumentError, NotFoundError, CancelledError: as `create` does; also where a node
                has the name of one that is there.
        """
        self._check_open()
        if not self._is_created:
            self.create(graph_def)
            return
        with self._lock:
            self._check_extensible()
            graph = self._session.graph
            taken = {op.name for op in graph.get_operations()}
            for node in graph_def.node:
                if node.name in taken:
                    raise InvalidArgumentError(
                        f"GraphDef argument to Extend includes node '{node.name}', which was created "
                        "by a previous call to Create or Extend in this session."
                    )
            whole = graph.as_graph_def()
            versions = merge_versions(whole.versions, graph_def.versions)
            whole.MergeFrom(GraphDef(node=graph_def.node, library=graph_def.library))
            whole.versions.CopyFrom(versions)
            self._import(Graph(), whole)  # a trial, which finds the errors
            import_graph_def(graph_def, name="", graph=graph, input_map=_inputs(graph, graph_def))

    def finalize(self) -> None:
        """Refuse to extend the graph, and to compile feeds and fetches that did not run before.

        Raises:
            FailedPreconditionError: it was called before.
        """
        if self._is_finalized:
            raise FailedPreconditionError("Session already finalized.")
        self._check_created("Finalize()")
        self._is_finalized = True
        self._session.finalize()

    # Steps.

    def run(
        self,
        inputs: Feeds = (),
        output_names: Sequence[str] = (),
        target_nodes: Sequence[str] = (),
        *,
        options: AnyRunOptions | None = None,
        run_metadata: Message | None = None,
    ) -> list[Any]:
        """Run one step.

        Args:
            inputs: values by the names of tensors, `x` or `x:0`.
            output_names: the tensors to fetch.
            target_nodes: the nodes to run besides.
            options: as those of `Session.run`.
            run_metadata: as that of `Session.run`.

        Returns:
            The values of the outputs, in their order.

        Raises:
            InvalidArgumentError: there is no graph, or nothing to do; a name is of nothing, is fed
                twice, or is both fed and fetched; or a kernel refused its inputs.
            NotFoundError: the graph lacks a target.
            OutOfRangeError: a node has no such output.
            CancelledError: the session is closed, or the step was cancelled.
            FailedPreconditionError: the session was finalized, and has not run these names before.
        """
        self._check_open()
        self._check_created("Run()")
        names, values = _names_and_values(inputs)
        signature = self._signature(names, output_names, target_nodes)
        _check_types(signature.feeds, values)
        feeds = dict(zip(signature.feeds, values, strict=True))
        outputs, _ = self._session.run(signature.elements, feeds, options, run_metadata)
        return list(outputs)

    def make_callable(self, callable_options: AnyCallableOptions) -> Callable[..., list[Any]]:
        """A function of the fed values, in their order, that returns the fetched ones.

        It also takes `run_metadata`, by keyword.

        Raises:
            InvalidArgumentError: as `run` does; also where a device does not exist, or a tensor
                connection makes no sense.
            NotFoundError, OutOfRangeError, CancelledError, FailedPreconditionError: as `run` does;
                the function raises them too.
        """
        self._check_open()
        self._check_created("MakeCallable()")
        options = CallableOptions.of(callable_options)
        self._check_devices({**options.feed_devices, **options.fetch_devices})
        graph, runner = self._session.graph, self._session._runner
        if options.tensor_connection:
            graph = connected(graph, options.tensor_connection)
            runner = runner.for_graph(graph)
        signature = StepSignature.of(graph, options.feed, options.fetch, options.target)
        run = runner.make_callable(signature.elements, tuple(signature.feeds))
        run_options = options.run_options

        def call(*values: Any, run_metadata: Message | None = None) -> list[Any]:
            self._check_open()
            _check_types(signature.feeds, values)
            outputs, _ = run(*values, options=run_options, run_metadata=run_metadata)
            return list(outputs)

        return call

    def partial_run_setup(
        self,
        input_names: Sequence[str] = (),
        output_names: Sequence[str] = (),
        target_nodes: Sequence[str] = (),
    ) -> str:
        """Prepare a step that is fed and fetched from in parts; the handle for `partial_run`.

        Raises:
            InvalidArgumentError, OutOfRangeError, CancelledError, FailedPreconditionError: as `run`
                does.
            NotFoundError: the graph lacks what is to be fed, fetched or run.
        """
        self._check_open()
        self._check_created("PRunSetup()")
        signature = StepSignature.of(
            self._session.graph, input_names, output_names, target_nodes, is_partial=True
        )
        return self._session.partial_run_setup(signature.elements, signature.feeds)

    def partial_run(
        self, handle: str, inputs: Feeds = (), output_names: Sequence[str] = ()
    ) -> list[Any]:
        """Go on with a step: feed more of it, and fetch what can be computed by now.

        Raises:
            InvalidArgumentError: as `Session.partial_run` does.
            CancelledError: the session is closed.
        """
        self._check_open()
        names, values = _names_and_values(inputs)
        feeds = dict(zip(map(_full_name, names), values, strict=True))
        outputs = self._session.partial_run(handle, [_full_name(n) for n in output_names], feeds)
        return list(outputs)

    # The session.

    def list_devices(self) -> list[DeviceAttributes]:
        """The devices that nodes may be placed on."""
        self._check_open()
        return self._session.list_devices()

    def close(self) -> None:
        """Cancel the steps under way and free what the session holds; it cannot run any more."""
        self._session.close()

    def _signature(
        self, inputs: Sequence[str], outputs: Sequence[str], targets: Sequence[str]
    ) -> StepSignature:
        """The tensors and operations of names; looked up once."""
        key = tuple(inputs), tuple(outputs), tuple(targets)
        found = self._signatures.get(key)
        if found is not None:
            return found
        with self._lock:
            found = self._signatures.find(key)
            return found or self._signatures.keep(key, StepSignature.of(self._session.graph, *key))

    def _import(self, graph: Graph, graph_def: GraphDef) -> None:
        """Import a graph and check it as a whole."""
        import_graph_def(graph_def, name="", graph=graph)
        if not self._config.place_pruned_graph:
            check_placement(graph.get_operations(), self._session._devices)

    def _check_open(self) -> None:
        if self._session._runtime.is_closed:
            raise CancelledError("Session has been closed.")

    def _check_created(self, method: str) -> None:
        if not self._is_created:
            raise InvalidArgumentError(f"Session was not created with a graph before {method}!")

    def _check_extensible(self) -> None:
        if self._is_finalized:
            raise FailedPreconditionError("Session has been finalized.")
        if not self._config.disable_optimize_for_static_graph:
            raise FailedPreconditionError(
                "Extending the graph is not supported when `disable_optimize_for_static_graph` is "
                "false."
            )

    def _check_devices(self, devices: Mapping[str, str]) -> None:
        """Raise InvalidArgumentError where a tensor is said to be on a device that is not there."""
        there = {device.name for device in self._session.list_devices()}
        for tensor, device in devices.items():
            if device not in there:
                raise InvalidArgumentError(
                    f"Device '{device}' specified for tensor '{tensor}' in CallableOptions does not "
                    "exist"
                )


def _names_and_values(inputs: Feeds) -> tuple[list[str], list[Any]]:
    pairs = list(inputs.items() if isinstance(inputs, Mapping) else inputs)
    return [name for name, _ in pairs], [value for _, value in pairs]


def _check_types(tensors: Sequence[Tensor], values: Sequence[Any]) -> None:
    """Raise InvalidArgumentError for an array of another type than the tensor that it is fed for."""
    for index, (tensor, value) in enumerate(zip(tensors, values)):  # noqa: B905  # checked later
        dtype = tensor.dtype.base
        given = getattr(value, "dtype", None)
        if isinstance(given, np.dtype) and given not in (dtype.numpy_dtype, dtype.as_numpy_dtype):
            raise InvalidArgumentError(
                f"Expects arg[{index}] to be {dtype.string} but {given} is provided",
                node=tensor.op.name,
            )


def _full_name(name: str) -> str:
    node, index = parse_input(name)
    return f"{node}:{index}"


def _inputs(graph: Graph, graph_def: GraphDef) -> dict[str, Any]:
    """An input map: the tensors of the graph that new nodes take as inputs."""
    new = {node.name for node in graph_def.node}
    found = {}
    for text in {text for node in graph_def.node for text in node.input}:
        node, index = parse_input(text)
        if node not in new:
            op = graph.get_operation_by_name(node)
            key = format_input(node, index) if index == CONTROL_SLOT else f"{node}:{index}"
            found[key] = op if index == CONTROL_SLOT else op.outputs[index]
    return found


_PARTITIONED_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall", "TPUPartitionedCall"})


def check_placement(ops: Collection[Operation], devices: DeviceSet) -> None:
    """Raise InvalidArgumentError where a node lacks its device, its function or its kernel."""
    devices.include(ops)
    for op in ops:
        devices.candidates(op)
        if op.type in _PARTITIONED_CALLS or is_lowered(op):
            _check_functions(op)
        elif op.type not in RUN_BY_EXECUTORS:
            _check_kernel(op, devices.types_by_priority)


def _check_functions(op: Operation) -> None:
    library = op.graph.function_library
    for value in op.node_def.attr.values():
        for function in (value.func, *value.list.func):
            if function.name and function.name not in library:
                known = ", ".join(one.signature.name for one in library.to_proto().function)
                raise InvalidArgumentError(
                    f'Failed to find function "{function.name}" in function library: {known}',
                    node=op.name,
                    op=op.type,
                )


def _check_kernel(op: Operation, types: Sequence[str]) -> None:
    """Refuse a node that no kernel of its op on devices of some types fits.

    An op without any kernel is refused by the steps that need it: TensorFlow may have one.
    """
    if op.type in op.graph.function_library or not get_registered_kernels_for_op(op.type).kernel:
        return
    registry = op.graph.op_registry
    if not supported_device_types_for_node(types, op.node_def, op_registry=registry):
        raise no_supported_device_error(op.node_def, types)
