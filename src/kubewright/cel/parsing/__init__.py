"""From the text of an expression to its syntax tree: lexer, parser, macros. Not type checks; see `cel.checker`."""
