"""Sets: the values along the last dimension of a tensor."""
