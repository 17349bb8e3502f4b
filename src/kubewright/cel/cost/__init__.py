"""What an expression costs: the actual cost while it runs, the estimated cost before. Not the evaluation itself."""
