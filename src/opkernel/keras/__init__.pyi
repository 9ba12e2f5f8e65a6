from opkernel.keras.tfsm_layer import TFSMLayer as TFSMLayer

__all__: list[str]
