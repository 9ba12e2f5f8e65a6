from opkernel.plugins.api_version import API_VERSION as API_VERSION
from opkernel.plugins.contents import Contents as Contents
from opkernel.plugins.contents import contents_of as contents_of
from opkernel.plugins.discovery import ENTRY_POINT_GROUP as ENTRY_POINT_GROUP
from opkernel.plugins.loading import load_library as load_library
from opkernel.plugins.loading import load_plugins as load_plugins
from opkernel.plugins.plugin import Plugin as Plugin

__all__: list[str]
