"""Programs that find out while they run how their steps are fastest.

| strategy | tries |
|---|---|
| `shapes` | plans for the shapes that feeds have again and again |
| `variables` | programs for the values that variables keep |
| `engines` | programs with clusters for each engine |
| `branches` | branches of a graph side by side |

Their budget: plans for four combinations of shapes are kept, and programs of engines for four; six programs are made
for the values of variables, each at the first step with these. Branches are tried for half a second, or twice. A plan
for shapes is made after three steps, then after twice as many each time, so that shapes which keep changing cost
little.
"""
