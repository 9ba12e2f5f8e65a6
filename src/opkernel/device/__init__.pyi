from opkernel.device.device_factory import DeviceFactory as DeviceFactory
from opkernel.device.device_factory import DeviceOptions as DeviceOptions
from opkernel.device.device_factory import register_device_factory as register_device_factory
from opkernel.device.device_factory import unregister_device_factory as unregister_device_factory
from opkernel.device.local_device import Device as Device

__all__: list[str]
