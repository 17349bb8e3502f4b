"""The object model: plain data, no I/O. Kinds as classes, the values they are made of, and patches between them."""
