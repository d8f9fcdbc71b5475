"""Scans of structured linear recurrences, forward and gradient, from Python.

lrnn.torch has PyTorch operators and layers, lrnn.reference the naive forms in NumPy, lrnn.ops the library by ctypes.
"""

from lrnn.ops import LrnnError, library_path, version

__all__ = ["LrnnError", "library_path", "version"]
