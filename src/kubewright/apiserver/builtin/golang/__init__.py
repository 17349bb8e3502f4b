"""The Go types of built-in kinds: decoding, printing and naming of their fields.

`builtin.validation` validates the values.
"""
