"""Models mapped over data sets.

`data_files` finds the rows of a data set: arrays in memory, or files that whoever computes reads. `rows` reads them, and
cuts them into batches. `mapped_model` is the model, to whose inputs it fits them. `workers` computes batches here, by
processes or on a Ray cluster. `parts` writes what comes of them, so that a later run goes on from there, and
`prediction` puts all of it together.
"""
