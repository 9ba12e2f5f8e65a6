"""BuildXlaOps: the calls of clusters become nodes that launch what an engine made of them.

A call becomes one XlaLaunch, which runs the function itself where there is no program. On request, it becomes an
_XlaCompile and an _XlaRun; the call stays beside them, for where the cluster could not be compiled:

    key, is_compiled = _XlaCompile(constants, args, resources)
    results = _XlaRun(args, resources, key) if is_compiled else call(constants, args, resources)

Source: TensorFlow compiler/jit/build_xla_ops_pass.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opkernel.graph import Operation, Tensor
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.optimization.clusters.encapsulate_subgraphs import (
    COMPILE_MODE,
    ENGINE,
    NUM_CONSTANT_ARGS,
    NUM_LASTING_ARGS,
    NUM_RESOURCE_ARGS,
)
from opkernel.proto import NameAttrList


def build_xla_ops(editor: GraphEditor) -> None:
    """Have clusters launched."""
    options = editor.jit
    if options is None:
        return
    for op in editor.operations():
        if NUM_CONSTANT_ARGS not in op.message.attr or op.type not in op.graph.function_library:
            continue
        if options.has_compile_nodes:
            _CompileAndRun(editor, op).build()
        else:
            _launch(editor, op, options.mode)


def _launch(editor: GraphEditor, call: Operation, mode: str) -> None:
    """Turn a call into an XlaLaunch."""
    attrs = {**_attrs(call), "Tresults": call.output_types, COMPILE_MODE: mode.encode()}
    editor.become(call, "XlaLaunch", call.inputs, attrs)


def _attrs(call: Operation) -> dict[str, Any]:
    attrs, types = call.message.attr, call.input_types
    constants, resources = attrs[NUM_CONSTANT_ARGS].i, attrs[NUM_RESOURCE_ARGS].i
    return {
        "Tconstants": types[:constants],
        "Targs": types[constants : len(types) - resources],
        "Nresources": resources,
        "function": NameAttrList(name=call.type),
        ENGINE: attrs[ENGINE].s,
        NUM_LASTING_ARGS: attrs[NUM_LASTING_ARGS].i,
    }


class _CompileAndRun:
    """A call that is compiled by one node and run by another."""

    def __init__(self, editor: GraphEditor, call: Operation) -> None:
        self._editor, self._call = editor, call
        self._waiting = [one for one, place in call.consumer_edges() if place < 0]
        self._name = call.name

    def build(self) -> None:
        """Put the nodes beside the call; others take the results of whichever runs."""
        call, add = self._call, self._editor.add
        compiler = add(
            "_XlaCompile",
            call.inputs,
            f"{self._name}/xla_compile",
            {**_attrs(call), "must_compile": False},
            call.device,
            call.control_inputs,
        )
        key, is_compiled = compiler.outputs
        no, yes = add(
            "Switch", [key, is_compiled], f"{self._name}/predicated_compilation_key"
        ).outputs
        not_compiled = add("Identity", [no], f"{self._name}/not_compiled")
        runner = self._runner(yes)
        call.add_control_inputs([not_compiled])
        self._merge(runner.outputs)
        if self._waiting:
            self._lead_waiting(add("Identity", [yes], f"{self._name}/ran", {}, "", [runner]))
        self._note_places(compiler, runner)

    def _runner(self, key: Tensor) -> Operation:
        call = self._call
        constants = call.message.attr[NUM_CONSTANT_ARGS].i
        attrs = {"Targs": call.input_types[constants:], "Tresults": call.output_types}
        inputs = [*call.inputs[constants:], key]
        return self._editor.add("_XlaRun", inputs, f"{self._name}/xla_run", attrs, call.device)

    def _merge(self, results: Sequence[Tensor]) -> None:
        """Have consumers take a result of the call or of the program, whichever is alive."""
        for own, other in zip(self._call.outputs, results, strict=True):
            consumers = [one for one, _ in own.consumer_edges()]
            merge = self._editor.add("Merge", [own, other], f"{self._name}/merge")
            if consumers:
                self._editor.redirect(own, merge.outputs[0], consumers)

    def _lead_waiting(self, ran: Operation) -> None:
        """Have those that waited for the call wait for the call or the program."""
        add, call = self._editor.add, self._call
        (no,) = [op for op in call.control_inputs if op.name == f"{self._name}/not_compiled"]
        called = add("Identity", no.outputs, f"{self._name}/called", {}, "", [call])
        done = add("Merge", [called.outputs[0], ran.outputs[0]], f"{self._name}/done")
        for one in self._waiting:
            one.set_control_inputs([done if op is call else op for op in one.control_inputs])

    def _note_places(self, *ops: Operation) -> None:
        devices = self._editor.graph.assigned_devices
        if self._call in devices:
            devices.update((op, devices[self._call]) for op in ops)
