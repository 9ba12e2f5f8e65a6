"""Kernel libraries: packages and folders whose ops and kernels are found when they are needed."""

from opkernel.plugins.api_version import API_VERSION
from opkernel.plugins.contents import Contents, contents_of
from opkernel.plugins.discovery import ENTRY_POINT_GROUP
from opkernel.plugins.loading import load_library, load_plugins
from opkernel.plugins.plugin import Plugin

__all__ = [
    "API_VERSION",
    "ENTRY_POINT_GROUP",
    "Contents",
    "Plugin",
    "contents_of",
    "load_library",
    "load_plugins",
]
