"""Faster versions of the modules of `nmt.model`: `accelerate` for training, `pack` and `pack_search` for decoding.

Each fast class is a subclass of a plain one, with the same parameters and the same results to within rounding. They are made for
CPUs. A GPU runs the plain modules; in training, PyTorch compiles their steps (`compiled`). `NMT_FAST=0` switches all of this off,
`NMT_NATIVE=0` only the compiled kernels. tools/README.md says what each of them earns.
"""

from nmt.fast.accelerate import accelerate, is_compiled
from nmt.fast.pack import pack, pack_search
from nmt.fast.twins import arithmetic, is_on

__all__ = ["accelerate", "arithmetic", "is_compiled", "is_on", "pack", "pack_search"]
