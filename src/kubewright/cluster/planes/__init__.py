"""Control planes put together: embedded, real, and those kept running for people."""
