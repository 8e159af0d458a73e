"""Linear algebra on one thread."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager
from typing import Any


@functools.cache
def _controller() -> Any:
    import scipy.linalg  # noqa: F401, PLC0415 - the controller knows the libraries loaded before it
    from threadpoolctl import ThreadpoolController  # noqa: PLC0415 - only the batch estimators pay for the import

    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Run what is inside with one BLAS thread.

    Then results do not depend on the number of cores, and no idle thread spins beside the kernel that comes next: that
    alone doubled the time of a trimmed covariance.
    """
    limit: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limit
