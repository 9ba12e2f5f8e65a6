"""What the kernels of a step share: services that are made on demand, and end with it."""

import threading

import numpy as np
import pytest

import opkernel
from opkernel.errors import CancelledError, DeadlineExceededError, FailedPreconditionError
from opkernel.graph import graph_to_function_def
from opkernel.kernel import AsyncOpKernel, OpKernel, ResourceBase
from opkernel.opdef import register_op, scalar_shape
from opkernel.runtime import RunOptions, Session
from opkernel.runtime.program.run_step import RunStep


class Note(ResourceBase):
    """A resource of a step."""

    def __init__(self, ended):
        self.ended = ended

    def on_destroy(self):
        self.ended.append(True)


def run_kernel(kernel, options=None, graph=None):
    """One step of a graph with one node whose kernel is this class."""
    register_op("StepTest", outputs=["y: float"], is_stateful=True, shape_fn=scalar_shape)
    opkernel.register_kernel("StepTest", device="CPU")(kernel)
    graph = graph or opkernel.Graph()
    with graph.as_default():
        tensor = graph.create_op("StepTest", []).outputs[0]
    with Session(graph) as session:
        return session.run(tensor, options=options)


def test_steps_have_their_own_numbers_and_services():
    steps = [RunStep(), RunStep()]
    assert steps[0].step_id != steps[1].step_id
    assert steps[0].rendezvous is steps[0].rendezvous
    assert steps[0].rendezvous is not steps[1].rendezvous
    assert steps[0].step_container.name != steps[1].step_container.name


def test_resources_of_a_step_end_with_it():
    ended: list[bool] = []

    class Keeps(OpKernel):
        def compute(self, ctx):
            ctx.step_container.create(ctx.resource_manager, "note", Note(ended))
            assert not ended
            ctx.set_output(0, np.float32(1))

    run_kernel(Keeps)
    assert ended == [True]


def test_deferred_work_is_waited_for():
    done: list[bool] = []

    class Defers(OpKernel):
        def __init__(self, construction):
            super().__init__(construction, is_deferred=True)

        def compute(self, ctx):
            begin, end = ctx.inc_num_deferred_ops_function(), ctx.dec_num_deferred_ops_function()

            def work():
                done.append(True)
                end()

            begin()
            threading.Timer(0.05, work).start()
            ctx.set_output(0, np.float32(1))

    assert run_kernel(Defers) == 1
    assert done == [True]


def test_a_kernel_that_waits_is_told_of_the_deadline():
    told: list[bool] = []

    class Waits(AsyncOpKernel):
        def compute_async(self, ctx, done):
            manager = ctx.cancellation_manager
            token = manager.get_cancellation_token()

            def give_up():
                told.append(True)
                ctx.set_status(CancelledError("told"))
                done()

            assert manager.register_callback(token, give_up)

    for timeout_in_ms in (
        50,
        500,
        5_000,
        50_000,
    ):  # a busy machine may need more for the kernel to begin
        with pytest.raises((DeadlineExceededError, CancelledError)):
            run_kernel(Waits, RunOptions(timeout_in_ms=timeout_in_ms))
        if told:
            break
    assert told == [True]


def test_sessions_do_not_share_resources():
    class Counts(OpKernel):
        def compute(self, ctx):
            counter = ctx.resource_manager.lookup_or_create("", "n", Note, lambda: Note([]))
            counter.ended.append(True)
            ctx.set_output(0, np.float32(len(counter.ended)))

    assert [run_kernel(Counts) for _ in range(2)] == [1, 1]


def test_kernels_know_where_their_nodes_were_defined():
    files: list[str] = []

    class Asks(OpKernel):
        def compute(self, ctx):
            files.extend(frame.filename for frame in ctx.stack_trace)
            ctx.set_output(0, np.float32(1))

    run_kernel(Asks)
    assert __file__ in files


def test_kernels_may_call_functions_of_the_graph():
    class Calls(OpKernel):
        def __init__(self, construction):
            super().__init__(construction)
            self.function = construction.function_library.instantiate("twice")

        def compute(self, ctx):
            assert ctx.function_library is not None
            (result,) = self.function(ctx.step, np.float32(3))
            ctx.set_output(0, result)

    body = opkernel.Graph()
    with body.as_default():
        x = body.create_op("Placeholder", attrs={"dtype": opkernel.float32}).outputs[0]
        y = body.create_op("AddV2", [x, x]).outputs[0]
    graph = opkernel.Graph()
    graph.function_library.add_function(graph_to_function_def(body, "twice", [x], [y]))
    assert run_kernel(Calls, graph=graph) == 6


def test_a_closed_session_stays_closed():
    session = Session(opkernel.Graph())
    session.close()
    with pytest.raises(FailedPreconditionError, match="closed"):
        session.run([])


def test_deferred_work_is_done_before_the_answer_is_made():
    class Fills(OpKernel):
        def __init__(self, construction):
            super().__init__(construction, is_deferred=True)

        def compute(self, ctx):
            out = ctx.allocate_output(0, [])
            begin, end = ctx.inc_num_deferred_ops_function(), ctx.dec_num_deferred_ops_function()

            def work():
                out[...] = 42
                end()

            begin()
            threading.Timer(0.05, work).start()

    assert run_kernel(Fills) == 42


def test_closing_a_session_cancels_its_steps():
    waiting = threading.Event()

    class Waits(AsyncOpKernel):
        def compute_async(self, ctx, done):
            def give_up():
                ctx.set_status(ctx.cancellation_manager.status or CancelledError("told"))
                done()

            manager = ctx.cancellation_manager
            assert manager.register_callback(manager.get_cancellation_token(), give_up)
            waiting.set()

    register_op("StepTest", outputs=["y: float"], is_stateful=True, shape_fn=scalar_shape)
    opkernel.register_kernel("StepTest", device="CPU")(Waits)
    graph = opkernel.Graph()
    with graph.as_default():
        tensor = graph.create_op("StepTest", []).outputs[0]
    session = Session(graph)

    def close():
        assert waiting.wait(10)
        session.close()

    closer = threading.Thread(target=close)
    closer.start()
    with pytest.raises(CancelledError):
        session.run(tensor, options=RunOptions(timeout_in_ms=20_000))
    closer.join()
