"""Where work runs side by side: on the cores of this machine, or on a Dask cluster."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import joblib

from countleak.errors import InputError, MissingExtra


@contextmanager
def workers(jobs: int = -1, cluster: str | None = None) -> Iterator[joblib.Parallel]:
    """What runs joblib's delayed calls and returns results as they come.

    ``cluster`` is a Dask scheduler's address (`tcp://host:8786`), or `local:2` for a Dask cluster
    of two worker processes started here; without one, joblib uses ``jobs`` cores of this machine.
    """
    with ExitStack() as stack:
        if cluster is None:
            stack.enter_context(joblib.parallel_config("loky", inner_max_num_threads=1))
        else:
            stack.enter_context(_dask(cluster))
            stack.enter_context(joblib.parallel_config("dask"))
            jobs = -1
        yield joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")


@contextmanager
def _dask(address: str) -> Iterator[None]:
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise MissingExtra("a Dask cluster", "cluster") from None
    with ExitStack() as stack:
        if address.startswith("local:"):
            if not re.fullmatch("[1-9][0-9]{0,3}", address[6:]):
                raise InputError(f"cluster {address!r}: write local:2 for two workers")
            cluster = LocalCluster(
                n_workers=int(address[6:]), threads_per_worker=1, dashboard_address=None
            )
            address = stack.enter_context(cluster).scheduler_address
        elif not address.startswith(("tcp://", "tls://")):
            raise InputError(f"cluster {address!r}: write tcp://host:8786 or local:2")
        try:
            stack.enter_context(Client(address, timeout=4))
        except (OSError, ValueError):
            raise InputError(f"cluster {address}: no Dask scheduler answers there") from None
        yield
