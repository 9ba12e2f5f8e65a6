"""Variables: tensors that outlive steps, behind resource handles or, as in TensorFlow 1, references."""
