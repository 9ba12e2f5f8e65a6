"""OpenVINO as an engine: parts of graphs in float32, compiled for the CPU (extra `opkernel[openvino]`).

Importing this registers the engine; OpenVINO itself is imported when something is compiled.
"""

from opkernel.engines.openvino.engine import OpenVinoEngine
from opkernel.runtime.engines.engine import register_engine

__all__ = ["OpenVinoEngine"]

register_engine(OpenVinoEngine())
