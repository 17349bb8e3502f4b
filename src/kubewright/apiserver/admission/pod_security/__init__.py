"""Pod security: what pods of a namespace may ask for, as the labels of the namespace say.

`levels` reads the labels, `subjects` is a pod as the rules see it, `baseline` and `restricted` are the rules of the two
levels, `standards` says which of them hold at which version, `plugin` is the judge that admission asks.
"""
