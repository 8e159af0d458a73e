"""The one place where kernels get their compiler switches."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


def kernel(function: F) -> F:
    """Compile to machine code on first call, cached on disk, without the global lock.

    ``fastmath`` stays off: it deletes NaN guards and reorders sums, so that one row and many would differ. Division by
    zero follows IEEE (``error_model="numpy"``), so kernels guard their divisions.
    """
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))


def parallel_kernel(function: F) -> F:
    """Compile like `kernel`, with ``prange`` loops run by Numba's threads.

    The turns of such a loop must write to places of their own and share no sums, so that the result is the same for any
    number of threads.
    """
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy", parallel=True)(function))


prange: type[range] = numba.prange
"""``range`` whose turns may run side by side, inside a `parallel_kernel`."""
