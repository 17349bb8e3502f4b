"""How Go reads, prints and names the fields of built-in kinds. Not whether their values make sense; see
`builtin.validation`."""
