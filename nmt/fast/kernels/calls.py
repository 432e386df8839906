"""How the compiled kernels are called: here, and only here, arguments are checked against the declared signatures.

Python code is written for each signature, once, as `dataclasses` does: to read the declaration at every call takes as long as many
a kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from ctypes import CDLL, c_double, c_int64, c_void_p
from functools import cache
from textwrap import indent
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from nmt.fast.kernels.build import library
from nmt.fast.kernels.signatures import SIGNATURES, WIDE_OR_NARROW, Array, Signature

_SHARED = 2**17
"""Numbers from which on threads share them."""


def call(name: str, tensors: tuple[Tensor | None, ...], *numbers: int) -> float | None:
    """Call a kernel with tensors and the numbers that do not follow from them; most return None.

    Raises:
        TypeError: an argument is of another type, or not in the memory of the CPU.
        ValueError: an argument has another size, or strides that the kernel does not know.
    """
    kernels = library()
    assert kernels is not None
    return _kernel(kernels, name)(*tensors, *numbers)


@cache
def _kernel(kernels: CDLL, name: str) -> Callable[..., float | None]:
    signature, function = SIGNATURES[name], getattr(kernels, name)
    function.argtypes = [c_void_p] * len(signature.arrays) + [c_int64] * len(signature.numbers)
    function.restype = c_double if signature.returns_number else None
    return checked(signature, function)


def checked(signature: Signature, function: Callable[..., float | None]) -> Callable[..., float | None]:
    """A function of tensors, and of the numbers that the caller gives, which checks them and calls one of addresses and numbers."""

    def mismatch(*arguments: Any) -> Exception:
        return _mismatch(signature, arguments)

    namespace: dict[str, Any] = {"function": function, "mismatch": mismatch, "torch": torch}
    exec(_source(signature), namespace)  # noqa: S102 -- made from the declarations alone
    return namespace[signature.name]  # type: ignore[no-any-return]


@cache
def number(value: float) -> Float[Tensor, ""]:
    """A number with an address, for kernels: their other numbers are whole."""
    return torch.tensor(value)


def threads_for(work: int) -> int:
    """How many to share so many numbers: to wake a thread takes as long as some ten thousand of them."""
    return torch.get_num_threads() if work > _SHARED else 1


# --- the Python code of a signature -------------------------------------------------------------------------------


def _source(signature: Signature) -> str:
    """A function that binds sizes, checks all arguments in one expression, and calls the kernel."""
    arguments = ", ".join([*(array.name for array in signature.arrays), *signature.given])
    sizes = "\n".join(statement for _, statement in _bindings(signature))
    checks = " and\n".join(f"({check})" for _, check in _checks(signature))
    addresses = [_address(array) for array in signature.arrays]
    return f"""\
def {signature.name}({arguments}):
    try:
{indent(sizes or "pass", " " * 8)}
        fits = (
{indent(checks or "True", " " * 12)}
        )
    except (AttributeError, ValueError):
        fits = False
    if not fits:
        raise mismatch({arguments})
    return function({", ".join([*addresses, *signature.numbers])})
"""


def _bindings(signature: Signature) -> Iterator[tuple[Array, str]]:
    """Statements that give sizes and strides their values, with the array that each reads."""
    unbound = set(signature.sizes)
    for array in sorted(signature.arrays, key=lambda array: array.is_optional):
        targets = [size if size in unbound else "_" for size in array.sizes]
        if array.shape.startswith("*") and array.shape[1:] in unbound:
            targets = [array.shape[1:]]
            yield array, f"{targets[0]} = {array.name}.numel()"
        elif set(targets) - {"_"}:
            yield array, _unpacked(array, targets, "shape")
        if array.has_strided_rows:
            yield array, _unpacked(array, [f"{array.name}_stride", f"{array.name}_last"], "stride()")
        unbound -= set(targets)
    typed = _first_of_free_type(signature)
    if typed is not None:
        yield typed, f"dtype = {typed.name}.dtype; narrow = dtype is torch.bfloat16"


def _unpacked(array: Array, targets: list[str], attribute: str) -> str:
    """Zeros where an optional array is absent."""
    value = f"{array.name}.{attribute}"
    if array.is_optional:
        value = f"{(0,) * len(targets)} if {array.name} is None else {value}"
    return f"{', '.join(targets)}, = {value}"


def _first_of_free_type(signature: Signature) -> Array | None:
    """The required array whose type, fp32 or bf16, all such arrays have."""
    free = (array for array in signature.arrays if array.dtypes == WIDE_OR_NARROW and not array.is_optional)
    return next(free, None)


def _checks(signature: Signature) -> Iterator[tuple[Array | None, str]]:
    """Expressions that are true of good arguments, with the array that each is about."""
    for names in signature.together:
        yield None, " == ".join(f"({name} is None)" for name in names)
    bindings = list(_bindings(signature))
    for array in signature.arrays:
        gives_sizes = (array, _unpacked(array, array.sizes, "shape")) in bindings  # and has them
        check = " and ".join(_checks_of(array, has_sizes=gives_sizes))
        yield array, f"{array.name} is None or {check}" if array.is_optional else check
    threads = ("threads > 0",) if "threads" in signature.numbers else ()
    yield from ((None, condition) for condition in (*threads, *signature.conditions))


def _checks_of(array: Array, *, has_sizes: bool) -> Iterator[str]:
    name, rows_lie_apart = array.name, array.has_strided_rows
    yield f"{name}.is_cpu"
    if array.dtypes == WIDE_OR_NARROW:
        yield f"{name}.dtype is dtype and (narrow or dtype is torch.float32)"
    else:
        yield f"{name}.dtype is {array.dtypes[0]}"
    if array.shape.startswith("*"):
        yield f"{name}.numel() == {array.shape[1:]}"
    elif not has_sizes:
        yield f"{name}.shape == ({''.join(f'{size}, ' for size in array.sizes)})"
    yield f"({name}_last == 1 or {name}.shape[1] < 2)" if rows_lie_apart else f"{name}.is_contiguous()"
    if rows_lie_apart and array.is_written:  # rows that share memory would overwrite one another
        yield f"({name}_stride >= {name}.shape[1] or {name}.shape[0] < 2)"


def _address(array: Array) -> str:
    address = f"{array.name}.data_ptr()"
    return f"None if {array.name} is None else {address}" if array.is_optional else address


# --- what was wrong -----------------------------------------------------------------------------------------------


def _mismatch(signature: Signature, arguments: tuple[Any, ...]) -> Exception:
    """The error for arguments that do not fit: the first that is wrong, as it is and as it should be."""
    names = [*(array.name for array in signature.arrays), *signature.given]
    known: dict[str, Any] = {"torch": torch, **dict(zip(names, arguments, strict=True))}
    array, failed = _first_failure(signature, known)
    if array is None:
        return ValueError(f"{signature.name}: this must hold, but does not: {failed}.")
    tensor, shape = known[array.name], f"[{array.shape}]"
    if not isinstance(tensor, Tensor):
        return TypeError(f"{signature.name}: {array.name} must be a tensor {shape}, but is {tensor!r}.")
    layout = "with the numbers of a row side by side" if array.has_strided_rows else "contiguous"
    expected = f"{' or '.join(map(str, array.dtypes))} {shape}, {layout}, in the memory of the CPU"
    actual = f"{tensor.dtype} {list(tensor.shape)} with strides {list(tensor.stride())} on {tensor.device}"
    sizes = "".join(f", {name} = {known[name]}" for name in sorted(signature.sizes & known.keys()))
    common = known.get("dtype", tensor.dtype) if array.dtypes == WIDE_OR_NARROW else tensor.dtype
    has_type = tensor.dtype in array.dtypes and tensor.dtype is common
    error = ValueError if tensor.is_cpu and has_type else TypeError
    return error(f"{signature.name}: {array.name} must be {expected}, but is {actual}{sizes}.")


def _first_failure(signature: Signature, known: dict[str, Any]) -> tuple[Array | None, str]:
    """What the code of `_source` finds, one step after the other; sizes and strides are added to what is known."""
    for array, statement in _bindings(signature):
        try:
            exec(statement, known)  # noqa: S102
        except (AttributeError, ValueError):
            return array, statement
    for about, check in _checks(signature):
        try:
            fits = eval(check, known)  # noqa: S307
        except (AttributeError, IndexError):
            fits = False
        if not fits:
            return about, check
    raise AssertionError(f"The arguments of {signature.name} fit.")
