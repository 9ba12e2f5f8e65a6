"""The wiring: where the things stand that fill the slots of the rooms below.

A place is a module, or `module:name`. Modules of engines, device types, kernel providers, passes and kernels register
what they have when they are imported, as plugins do, which add theirs beside these.
"""

SLOTS = {
    "catalogue of ops": "opkernel.ops.loader",
    "builder of nodes": "opkernel.graph.core.create_op:build_node",
    "copy of a graph": "opkernel.graph.io.graph_import:copied_graph",
    "devices of the CPU": "opkernel.device.local_device",
    "drawing of a graph": "opkernel.drawing:notebook_html",
    "edit of a graph": "opkernel.graph.edit.graph_edit:edit_graph",
    "full types of a graph": "opkernel.graph.inference.full_type_inference:infer_full_types",
    "functions of NumPy on tensors": "opkernel.graph.building.numpy_functions:call_numpy",
    "gradient of a call by name": "opkernel.gradients.calls:call_by_name_gradient",
    "gradient of a frame loop": "opkernel.gradients.loops:frame_loop_gradient",
    "kernels of compilation devices": "opkernel.xla.op_registry:compilation_kernels",
    "messages of structures": "opkernel.interop.structured_value",
    "operators of tensors": "opkernel.graph.building.operators:operate",
    "optimization passes": "opkernel.optimization.built_in",
    "pickle of a graph": "opkernel.graph.io.graph_import:pickled_graph",
    "plugins": "opkernel.plugins.loading",
    "run in the default session": "opkernel.runtime.session.session:run_in_default_session",
    "runner of a compiled function": "opkernel.xla.compiled_function:make_runner",
    "runner of a function": "opkernel.runtime.calls.traced_calls:make_runner",
    "shape refiner of a graph": "opkernel.graph.inference.shape_refiner:ShapeRefiner",
    "shapes of a graph": "opkernel.graph.inference.graph_shapes:infer_shapes",
    "text of an OpDef": "opkernel.opdef.text.spec_text:registration_text",
    "values of constants": "opkernel.runtime.calls.constants:constant_values",
}
"""The place of the thing in each slot."""

NAMED_SLOTS = {
    "device type": {
        "GPU": "opkernel.xla.device",
        "TPU": "opkernel.xla.device",
        "XLA_CPU": "opkernel.xla.device",
    },
    "engine": {"openvino": "opkernel.engines.openvino", "xla": "opkernel.xla.engine"},
    "kernel provider": {"blas": "opkernel.providers", "loops": "opkernel.providers"},
    "kernels": {
        "XlaLaunch": "opkernel.runtime.engines.xla_ops",
        "XlaLaunchV2": "opkernel.runtime.engines.xla_ops",
        "_XlaCompile": "opkernel.runtime.engines.xla_ops",
        "_XlaRun": "opkernel.runtime.engines.xla_ops",
    },
    "kernels by extra": {"xla": "opkernel.xla.cpu_kernels"},
}
"""The places of the things of each kind, by their names."""
