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
