"""From classes to structural schemas: types, markers and docstrings become what the API server enforces."""
