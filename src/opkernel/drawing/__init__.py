"""Drawings of graphs, for notebooks and as pages."""

from opkernel.drawing.notebook import notebook_html
from opkernel.drawing.page import drawn_functions, html_page, programs_of_graph
from opkernel.drawing.page_data import DrawnCluster, DrawnProgram

__all__ = [
    "DrawnCluster",
    "DrawnProgram",
    "drawn_functions",
    "html_page",
    "notebook_html",
    "programs_of_graph",
]
