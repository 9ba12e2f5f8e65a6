"""TensorArrays: arrays of tensors that live for one step, each element written once."""
