"""RegisteredGraph: a task's part of a graph, made ready once for the steps of a session.

A step's part meets its parts in other tasks in a RemoteRendezvous. What is for another task is handed to an outbox,
which sends tensors that are ready at about the same time together.

Source: TensorFlow core/distributed_runtime/graph_mgr.cc, base_rendezvous_mgr.cc.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from opkernel.distributed.cluster.cluster_spec import TaskName
from opkernel.distributed.collectives.exchange import LARGE_BYTES
from opkernel.errors import CancelledError
from opkernel.graph import Graph, Operation
from opkernel.graph.core.structural_ops import ARG_OPS, RETVAL_OPS
from opkernel.graph.io.importer import GraphImporter, ImportOptions
from opkernel.kernel import LocalRendezvous, ParsedKey, RendezvousArgs, parse_key
from opkernel.proto import GraphDef
from opkernel.records import replace
from opkernel.runtime.program.executable import Executable, step_time
from opkernel.runtime.session.executables import Executables
from opkernel.runtime.session.session_config import StepOptions
from opkernel.runtime.session.session_runtime import SessionRuntime
from opkernel.runtime.session.step_runner import StepRunner

if TYPE_CHECKING:
    from opkernel.runtime.program.request import Variant


_NO_ARGS = RendezvousArgs()
_DELAY_S = 0.001
"""How long a tensor waits for others while its task has something else to do."""


class SentTensor(NamedTuple):
    """A tensor on its way to another task.

    Attributes:
        step: The key of the step.
        key: The key of the tensor in the step's rendezvous.
        value: The tensor; None where it is dead.
        is_dead: Whether it is dead.
    """

    step: str
    key: str
    value: Any
    is_dead: bool


class RemoteRendezvous(LocalRendezvous):
    """A rendezvous of one step in one task. Its end leaves alone what was sent to other tasks.

    Args:
        task: The task.
        step: The key of the step, the same in all tasks.
        outbox: Takes the tensors for other tasks.
    """

    def __init__(self, task: TaskName, step: str, outbox: Outbox) -> None:
        super().__init__()
        self._task = task
        self._step = step
        self._outbox = outbox

    def send(self, key: ParsedKey, args: RendezvousArgs, value: Any, is_dead: bool) -> None:
        """Hand a tensor over, to a receiver of this task or to the outbox."""
        receiver = TaskName(key.dst.job or "", key.dst.task or 0)
        if receiver == self._task:
            super().send(key, args, value, is_dead)
        else:
            self._outbox.put(receiver, SentTensor(self._step, key.full_key, value, is_dead))

    def flush(self) -> None:
        """Send what is in the outbox."""
        self._outbox.flush()

    def deliver(self, sent: SentTensor) -> None:
        """Take a tensor that another task has sent; raises OpError where the step was aborted."""
        super().send(parse_key(sent.key), _NO_ARGS, sent.value, sent.is_dead)


class Outbox:
    """The tensors of a task that are for other tasks; used from any thread.

    They leave when their task has nothing else to do (`flush`), or after a moment.

    Args:
        send: Sends tensors to a task.
    """

    def __init__(self, send: Callable[[TaskName, list[SentTensor]], object]) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._waiting: defaultdict[TaskName, list[SentTensor]] = defaultdict(list)
        self._has_some = threading.Event()
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def put(self, receiver: TaskName, sent: SentTensor) -> None:
        """Take a tensor; a large one is sent at once."""
        if getattr(sent.value, "nbytes", 0) >= LARGE_BYTES:
            self._send(receiver, [sent])
            return
        with self._lock:
            self._waiting[receiver].append(sent)
            if self._thread is None:
                self._thread = threading.Thread(target=self._flush_later, name="opkernel outbox")
                self._thread.daemon = True
                self._thread.start()
        self._has_some.set()

    def flush(self) -> None:
        """Send all that is here, to each task by one message."""
        if not self._waiting:
            return
        with self._lock:
            waiting, self._waiting = self._waiting, defaultdict(list)
            self._has_some.clear()
        for receiver, tensors in waiting.items():
            self._send(receiver, tensors)

    def close(self) -> None:
        """End the thread; what is here is not sent any more."""
        self._is_closed = True
        self._has_some.set()

    def _flush_later(self) -> None:
        """Send what waits, each time that a moment has gone by since something came."""
        pause = threading.Event()
        while True:
            self._has_some.wait()
            if self._is_closed:
                return
            pause.wait(_DELAY_S)
            self.flush()


class RegisteredGraph:
    """A graph whose `_Arg` nodes are fed and whose `_Retval` nodes are fetched, in the order of their index.

    All its other nodes run, too.

    Args:
        graph_def: The graph; each node says on which device of the session it runs.
        session: The session whose steps run it.

    Raises:
        InvalidArgumentError: a node is invalid, or lacks its device.
        NotFoundError: an op is not registered, or a needed node has no kernel.
    """

    def __init__(self, graph_def: GraphDef, session: SessionRuntime) -> None:
        graph = Graph()
        options = ImportOptions(allow_internal_names=True, expect_device=True, origin=None)
        GraphImporter(graph, graph_def, options).prepare().commit()
        operations = graph.get_operations()
        self._feeds = tuple([op.outputs[0] for op in _by_index(operations, ARG_OPS)])
        fetches = [op.inputs[0] for op in _by_index(operations, RETVAL_OPS)]
        ends = [op for op in operations if not any(True for _ in op.consumer_edges())]
        targets = [op for op in ends if op.type not in ARG_OPS | RETVAL_OPS]
        self._fetches = [fetches, targets]
        self._runner = StepRunner(session, Executables(graph, session))
        self._find("stoppable")  # which tells what is wrong with the graph

    def run(self, values: Sequence[Any], options: StepOptions) -> Sequence[Any]:
        """Run one step: the arrays of the fetches, which nodes may share.

        Args:
            values: an array for each feed.
            options: the step's.

        Raises:
            OpError: whatever a kernel raised, with the node that failed.
        """
        variant = options.variant(options.timeout_s)
        executable = self._find(variant)
        with step_time(options.timeout_s) as seconds_left:
            step = self._runner.step(options, variant, seconds_left)
            with step.cancelled_by(options.cancellation_manager):
                try:
                    results: Sequence[Any] = executable.step(values, step)
                except CancelledError:
                    step.check()  # which knows why a wait was cancelled: the time was over, say
                    raise
            options.recording.finish(executable)
        return results

    def _find(self, variant: Variant) -> Executable:
        executable = self._runner.executables.find(self._fetches, self._feeds, variant)
        return replace(executable, answer=list)


def _by_index(operations: Sequence[Operation], types: frozenset[str]) -> list[Operation]:
    found = [op for op in operations if op.type in types]
    return sorted(found, key=lambda op: op.node_def.attr["index"].i)
