"""Training on a cluster: where variables are, how they are saved, and how training goes on after a failure."""
