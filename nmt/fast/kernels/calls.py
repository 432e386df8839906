"""Calls of the compiled kernels. Here, and only here, arguments are checked against the declared signatures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import c_double, c_int64, c_void_p
from functools import cache
from itertools import chain
from operator import itemgetter

import torch
from jaxtyping import Float
from torch import Tensor

from nmt.fast.kernels.build import Kernels, library
from nmt.fast.kernels.signatures import SIGNATURES, Array, Signature

_WORK_TO_SHARE = 2**17
"""Operations from which on threads share them."""


def call(name: str, tensors: tuple[Tensor | None, ...], *numbers: int) -> float | None:
    """Call a kernel with its arrays and the numbers that do not follow from them; most return None.

    Raises:
        TypeError: an array has another type, or is not in the memory of the CPU.
        ValueError: an array has a size or strides that the kernel does not know, or a number is out of range.
    """
    kernels = library()
    assert kernels is not None
    return _kernel(kernels, name)(tensors, numbers)


@cache
def _kernel(kernels: Kernels, name: str) -> Kernel:
    signature, function = SIGNATURES[name], kernels.function(name)
    function.argtypes = [c_void_p] * len(signature.arrays) + [c_int64] * len(signature.numbers)
    function.restype = c_double if signature.returns_number else None
    return Kernel(signature, function)


class Kernel:
    """A C function of addresses and numbers, called with tensors that fit its signature."""

    def __init__(self, signature: Signature, function: Callable[..., float | None]) -> None:
        self.signature, self.function = signature, function
        self.checks: dict[tuple[bool, ...], Check] = {}
        """By whether each array is present."""

    def __call__(self, tensors: Sequence[Tensor | None], numbers: Sequence[int] = ()) -> float | None:
        key = tuple([tensor is not None for tensor in tensors])
        check = self.checks.get(key)
        if check is None:
            check = self.checks[key] = Check(self.signature, key)
        values = check.values([tensor for tensor in tensors if tensor is not None], numbers)
        return self.function(*[None if tensor is None else tensor.data_ptr() for tensor in tensors], *values)


class Check:
    """Whether arrays fit a signature.

    A property is read from all arrays and compared at once: one array at a time would take longer than many a kernel. All sizes,
    strides and numbers of a call form one tuple, in which entries of the same name must be equal.
    """

    def __init__(self, signature: Signature, present: tuple[bool, ...]) -> None:
        _check_presence(signature, present)
        self.signature = signature
        self.arrays = [array for array, is_present in zip(signature.arrays, present, strict=True) if is_present]
        self.strided = [index for index, array in enumerate(self.arrays) if array.has_strided_rows]
        self.contiguous = [index for index, array in enumerate(self.arrays) if not array.has_strided_rows]
        self.wide_types = [array.dtypes[0] for array in self.arrays]
        self.narrow_types = [array.dtypes[-1] for array in self.arrays]
        self.ranks = [len(array.sizes) for array in self.arrays]
        sizes = [size for array in self.arrays for size in array.sizes]
        strides = [name for index in self.strided for name in (self.arrays[index].stride_name, "1")]
        names = [*sizes, *strides, *signature.free_numbers, "narrow"]
        self.rules = [(rule, _reader(rule.names, names)) for rule in signature.rules if {*rule.names} <= {*names}]
        constants = {name: int(name) for name in names if name.isdecimal()}
        constants |= {name: 0 for name in signature.numbers if name not in names}  # sizes of absent arrays
        names += constants
        self.constants = tuple(constants.values())
        self.read_first, self.read_numbers = _reader(names, names), _reader(signature.numbers, names)

    def values(self, tensors: Sequence[Tensor], numbers: Sequence[int]) -> tuple[int, ...]:
        """The numbers that C reads."""
        dtypes = [tensor.dtype for tensor in tensors]
        is_narrow = dtypes != self.wide_types
        shapes = [tensor.shape for tensor in tensors]
        strides = [tensors[index].stride() for index in self.strided]
        values = (*chain(*shapes, *strides), *numbers, is_narrow, *self.constants)
        if (
            (is_narrow and dtypes != self.narrow_types)
            or False in [tensor.is_cpu for tensor in tensors]
            or False in [tensors[index].is_contiguous() for index in self.contiguous]
            or [*map(len, shapes)] != self.ranks
            or values != self.read_first(values)
        ):
            raise self._mismatch(tensors, numbers)
        for rule, read in self.rules:
            if not rule.holds(*read(values)):
                raise ValueError(f"{self.signature.name}: this must hold, but does not: {rule.text}.")
        return self.read_numbers(values)

    def _mismatch(self, tensors: Sequence[Tensor], numbers: Sequence[int]) -> Exception:
        """The error for the first array that is not as it should be."""
        sizes = dict(zip(self.signature.free_numbers, numbers, strict=True))
        free_types = [tensor.dtype for array, tensor in zip(self.arrays, tensors, strict=True) if len(array.dtypes) > 1]
        for array, tensor in zip(self.arrays, tensors, strict=True):
            has_type = tensor.dtype in array.dtypes and (len(array.dtypes) == 1 or tensor.dtype is free_types[0])
            if not (has_type and tensor.is_cpu):
                return TypeError(self._message(array, tensor, sizes))
            has_layout = tensor.stride()[1:] in [(), (1,)] if array.has_strided_rows else tensor.is_contiguous()
            if not (has_layout and _has_sizes(tensor, array, sizes)):
                return ValueError(self._message(array, tensor, sizes))
        raise AssertionError(f"The arguments of {self.signature.name} fit.")

    def _message(self, array: Array, tensor: Tensor, sizes: dict[str, int]) -> str:
        layout = "with the numbers of a row side by side" if array.has_strided_rows else "contiguous"
        expected = (
            f"{' or '.join(map(str, array.dtypes))} [{', '.join(array.sizes)}], {layout}, in the memory of the CPU"
        )
        actual = f"{tensor.dtype} {list(tensor.shape)} with strides {list(tensor.stride())} on {tensor.device}"
        known = "".join(f", {name} = {sizes[name]}" for name in sorted(self.signature.sizes & sizes.keys()))
        return f"{self.signature.name}: {array.name} must be {expected}, but is {actual}{known}."


def _check_presence(signature: Signature, present: tuple[bool, ...]) -> None:
    absent = {array.name for array, is_present in zip(signature.arrays, present, strict=True) if not is_present}
    for group in signature.optional:
        if not absent.isdisjoint(group) and not absent.issuperset(group):
            missing = [name for name in group if name in absent]
            raise ValueError(f"{signature.name}: {', '.join(missing)} must be present, since others of {group} are.")
        absent -= {*group}
    for array in signature.arrays:
        if array.name in absent:
            raise TypeError(f"{signature.name}: {array.name} must be a tensor [{', '.join(array.sizes)}], but is None.")


def _has_sizes(tensor: Tensor, array: Array, sizes: dict[str, int]) -> bool:
    """Whether a tensor has the sizes that are known; the others become known."""
    pairs = zip(array.sizes, tensor.shape, strict=False)
    expected = [int(size) if size.isdecimal() else sizes.setdefault(size, actual) for size, actual in pairs]
    return len(array.sizes) == tensor.dim() and expected == list(tensor.shape)


def _reader(names: Sequence[str], among: Sequence[str]) -> Callable[[tuple[int, ...]], tuple[int, ...]]:
    """Reads the values of some names, each where it stands first, from those of all."""
    places = [among.index(name) for name in names]
    if len(places) > 1:
        return itemgetter(*places)
    start = places[0] if places else 0
    return itemgetter(slice(start, start + len(places)))  # of a single index it would return no tuple


@cache
def number(value: float) -> Float[Tensor, ""]:
    """A number with an address, for kernels: their other numbers are whole."""
    return torch.tensor(value)


def threads_for(work: int) -> int:
    """How many threads to share so many operations: to wake a thread takes as long as some ten thousand of them."""
    return torch.get_num_threads() if work > _WORK_TO_SHARE else 1
