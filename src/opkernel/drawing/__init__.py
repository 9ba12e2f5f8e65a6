"""Drawings of graphs, for notebooks and as pages."""

from opkernel.drawing.page import html_page, notebook_html

__all__ = ["html_page", "notebook_html"]
