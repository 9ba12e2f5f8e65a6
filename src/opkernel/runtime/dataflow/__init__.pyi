from opkernel.runtime.dataflow.executor import DataflowExecutor as DataflowExecutor
from opkernel.runtime.dataflow.graph_view import GraphView as GraphView
from opkernel.runtime.dataflow.run import node_of_frame as node_of_frame

__all__: list[str]
