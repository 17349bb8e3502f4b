"""What the server does to objects of built-in kinds: defaults, preparation, validation, conversion."""
