"""The version, in one place: the package metadata is built from this line."""

__version__ = "0.1.0"
