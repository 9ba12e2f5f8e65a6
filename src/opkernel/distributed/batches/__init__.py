"""Models mapped over data sets.

`batch` cuts the rows of a data set into batches; `data_files` and its neighbours read them. `mapped_model` is the
model that they are given to, and `outcome` what comes of them. `workers` computes batches here or by processes.
`parts` writes what comes of them, so that a later run goes on from there, and `prediction` puts all of it together.
"""
