"""The global seed.

Source: TensorFlow python/framework/random_seed.py.
"""

from opkernel.endpoints.global_seed import set_global_seed


def set_seed(seed: int) -> None:
    """Set the global seed: from here on, random operations give the same numbers in every run.

    Each operation combines it with its own `seed`, if it has one, or else with its number in the order of
    calls. The numbers are TensorFlow's, for calls outside of graphs.
    """
    set_global_seed(seed)
