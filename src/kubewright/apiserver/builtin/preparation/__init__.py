"""PrepareForCreate and PrepareForUpdate of built-in kinds: `strategies` has the table, the others single kinds."""
