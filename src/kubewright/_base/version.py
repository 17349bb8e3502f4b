"""The version of this package; the build, the user agent and the command line read it."""

__all__ = ("__version__",)

__version__ = "0.1.0"
