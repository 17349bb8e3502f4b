"""The cost of expressions: the actual cost of an evaluation, and the estimated maximum before. Not the evaluation
itself.
"""
