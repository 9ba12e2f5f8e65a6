"""Special functions that NumPy lacks, of arrays. The ops that use them: `special_functions`."""
