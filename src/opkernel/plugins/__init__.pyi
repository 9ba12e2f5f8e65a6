from opkernel.plugins.contents import Contents as Contents
from opkernel.plugins.contents import contents_of as contents_of
from opkernel.plugins.discovery import ENTRY_POINT_GROUP as ENTRY_POINT_GROUP
from opkernel.plugins.discovery import Plugin as Plugin
from opkernel.plugins.loading import API_VERSION as API_VERSION
from opkernel.plugins.loading import load_library as load_library
from opkernel.plugins.loading import load_plugins as load_plugins

__all__: list[str]
