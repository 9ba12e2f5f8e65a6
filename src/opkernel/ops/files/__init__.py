"""Files: reading and writing them, checkpoints among them. Kernels open what the step permits."""
