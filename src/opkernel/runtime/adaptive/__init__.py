"""Programs that find out while they run how their steps are fastest.

| strategy | tries |
|---|---|
| `shapes` | plans for the shapes that feeds have again and again |
| `variables` | programs for the values that variables keep |
| `engines` | programs with clusters for each engine |
| `branches` | branches of a graph side by side |
"""
