"""The kernels for XLA, a module a topic. Ops that have portable kernels need none."""
