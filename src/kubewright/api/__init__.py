"""The object model: kinds as classes, the values they are made of, and patches between objects. Plain data, no I/O."""
