"""TensorFlow's op and kernel system in Python: declare ops, register kernels, run graphs.

    graph = opkernel.load_graph("model.pb")
    with opkernel.Session(graph) as session:
        y = session.run("y:0", {"x:0": x})

Names are loaded when they are first used, so that `import opkernel` by itself costs next to nothing.
"""

from opkernel.lazy_exports import lazy_exports

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_exports(__name__)
