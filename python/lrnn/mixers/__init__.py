"""The program's mixers in PyTorch, their recurrences by the library: one module a family."""

from lrnn.mixers import attention, gated, matrix, myosotis, plstm, slice
from lrnn.mixers.parts import Mixer, Rows

MIXERS: dict[str, type[Mixer]] = {}
for _family in (gated, slice, plstm, myosotis, matrix, attention):
    MIXERS.update(_family.MIXERS)

__all__ = ["MIXERS", "Mixer", "Rows"]
