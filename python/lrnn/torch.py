"""The scans as PyTorch operators, and layers made of them.

    import torch, lrnn.torch
    h, last = lrnn.torch.scan_block(z, v, gate="softmax", h0=None)
    layer = lrnn.torch.BDLRU(64, blocks=16, m=4)               # (B,T,64) -> (B,T,64)

Layers have the parameters of the program's mixers, by the same names and with the same start; a BDLRU or an HLRU also
has with_state(x, state), which gives y and the last state.
"""

from lrnn.mixers.gated import BDLRU, HLRU
from lrnn.mixers.myosotis import Myosotis
from lrnn.mixers.plstm import PLSTM
from lrnn.mixers.slice import SLiCE
from lrnn.operators import *  # noqa: F403
from lrnn.operators import __all__ as _operators

__all__ = [*_operators, "BDLRU", "HLRU", "Myosotis", "PLSTM", "SLiCE"]
