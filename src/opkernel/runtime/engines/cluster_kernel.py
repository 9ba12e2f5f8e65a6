"""ClusterKernel: what the kernels that run, or compile, clusters have in common.

Source: XlaLocalLaunchBase in TensorFlow compiler/jit/kernels/xla_ops.cc.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cached_property, partial
from typing import Any

from opkernel.errors import NotFoundError, OpError
from opkernel.graph import FunctionBody, instantiate_function
from opkernel.kernel import (
    KernelContract,
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
    lookup_resource,
)
from opkernel.logs import logger
from opkernel.optimization.clusters.encapsulate_subgraphs import ENGINE, NUM_LASTING_ARGS
from opkernel.runtime.engines.batches import batches_of
from opkernel.runtime.engines.cluster import Cluster
from opkernel.runtime.engines.engine import Engine, engine_named
from opkernel.runtime.engines.variables import Variables
from opkernel.state.resource_handle import handle_from_input

__all__ = ["CLUSTER_CONTRACT", "ClusterKernel"]

CLUSTER_CONTRACT = KernelContract(outputs_as_declared=True, may_alias=True, ignores_call=True)


class ClusterKernel(OpKernel):
    """A kernel with a cluster. Its inputs are constants, other tensors, and resources.

    Attributes:
        function: The function that the cluster became.
        library: Knows it.
        num_constants, num_resources: How many inputs are known at compile time, and how many are resources.
    """

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        attrs = self.node_def.attr
        self.library = construction.function_library
        self.function = attrs["function"].func
        self.num_constants = len(attrs["Tconstants"].list.type)
        self._num_lasting = attrs[NUM_LASTING_ARGS].i if NUM_LASTING_ARGS in attrs else 0
        self.num_resources = attrs["Nresources"].i
        self.lock = threading.RLock()
        self._engine = attrs[ENGINE].s.decode() if ENGINE in attrs else "xla"
        self._is_told = False

    @cached_property
    def engine(self) -> Engine:
        """What compiles the cluster.

        Raises:
            NotFoundError: there is no engine of that name.
            UnimplementedError: what it needs is not installed.
        """
        engine = engine_named(self._engine)
        engine.check_installed()
        return engine

    @cached_property
    def body(self) -> FunctionBody:
        """The function as a graph."""
        return instantiate_function(self.library.known_functions(), self.function)

    @cached_property
    def cluster(self) -> Cluster:
        """The programs of the cluster."""
        with self.lock:
            known: Cluster | None = vars(self).get("cluster")
            if known is not None:
                return known
            body = self.body
            return Cluster(
                partial(self.engine.compile, body),
                body.inputs,
                self.num_constants,
                self._num_lasting,
                partial(batches_of, body),
            )

    def variables(
        self, ctx: OpKernelContext, inputs: Sequence[Any], held: ExitStack
    ) -> Variables | None:
        """The inputs with their variables, which `held` gives up.

        None where one does not exist yet, or is given twice: a program takes two handles for two variables.
        """
        count, resources = len(inputs) - self.num_resources, []
        for handle in inputs[count:]:
            try:
                resource = lookup_resource(ctx, handle_from_input(handle))
            except NotFoundError:
                return None
            held.callback(resource.unref)
            if resource in resources:
                return None
            resources.append(resource)
        return Variables(inputs[:count], resources)

    def tell(self, error: OpError) -> None:
        """Log, once, that the cluster runs uncompiled."""
        if not self._is_told:
            self._is_told = True
            logger("opkernel.engines").warning(
                "%s does not compile %s, which the CPU's kernels compute: %s",
                *(self._engine, self.node_def.name, error),
            )
