"""Local control planes: embedded, real, and named ones that run in the background. Not the parts they are made of."""
