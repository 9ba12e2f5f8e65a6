"""ContainerInfo: under which name the kernel of a node keeps its resource.

Source: TensorFlow core/framework/resource_mgr.cc.
"""

import itertools
import re
from dataclasses import dataclass

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import get_node_attr
from opkernel.proto import NodeDef
from opkernel.state.resource_mgr import ResourceMgr

_CONTAINER_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9\-./]*")
_private_names = itertools.count()


@dataclass(frozen=True, slots=True)
class ContainerInfo:
    """Where a kernel keeps its resource.

    Attributes:
        resource_manager: The manager that has it.
        container: The container.
        name: The name in the container.
        resource_is_private_to_kernel: The kernel is to delete the resource when it ends.
    """

    resource_manager: ResourceMgr
    container: str
    name: str
    resource_is_private_to_kernel: bool

    @classmethod
    def init(
        cls,
        resource_manager: ResourceMgr,
        node_def: NodeDef,
        *,
        use_node_name_as_default: bool = False,
    ) -> "ContainerInfo":
        """The container and name that a node's attrs `container` and `shared_name` ask for.

        Without a container it is the manager's default one. Without a shared name it is the name
        of the node or, unless `use_node_name_as_default`, one that nothing else has.

        Raises:
            NotFoundError: the node lacks one of the attrs.
            InvalidArgumentError: the container is no name for one, or the shared name begins with
                an underscore.
        """
        container: str = get_node_attr(node_def, "container", "string")
        if container and not _CONTAINER_NAME.fullmatch(container):
            raise InvalidArgumentError(f"container contains invalid characters: {container}")
        shared_name: str = get_node_attr(node_def, "shared_name", "string")
        if shared_name.startswith("_"):
            raise InvalidArgumentError(f"shared_name cannot start with '_':{shared_name}")
        is_private = not shared_name and not use_node_name_as_default
        name = shared_name or node_def.name
        if is_private:
            name = f"_{next(_private_names)}_{node_def.name}"
        return cls(
            resource_manager,
            container or resource_manager.default_container,
            name,
            is_private,
        )

    def debug_string(self) -> str:
        """Container and name, and whether the resource is private."""
        visibility = "private" if self.resource_is_private_to_kernel else "public"
        return f"[{self.container},{self.name},{visibility}]"
