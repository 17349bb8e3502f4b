"""From a class to its structural schema: types, markers, docstrings and defaults. Not the check of an object; see
`schema.check`."""
