"""Scans of structured linear recurrences, forward and gradient, and the nets of lrnn, from Python.

lrnn.torch has PyTorch operators and layers, lrnn.load an exported net, lrnn.jax the operators in JAX, lrnn.arrays the
ops on arrays of any package, lrnn.reference the naive forms in NumPy, lrnn.ops the library by ctypes, lrnn.records the
records of runs.
"""

from lrnn.ops import LrnnError, library_path, version

__all__ = ["LrnnError", "library_path", "load", "save", "version"]


def __getattr__(name: str):
    """load and save import PyTorch when they are first asked for."""
    if name in ("load", "save"):
        from lrnn import net

        return getattr(net, name)
    raise AttributeError(f"module lrnn has no attribute {name}")
