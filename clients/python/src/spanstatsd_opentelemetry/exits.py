"""Closes clients in processes that end without the functions of atexit, which shut down OpenTelemetry's SDK.

Not covered are processes that call os._exit themselves, or that a signal kills. They lose the spans of the last seconds.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

_registered_in = 0  # process, because children of a fork have ends of their own


def close_at_exit(close: Callable[[], None]) -> None:
    """Registers a function for the end of this process. Further calls in a process have no effect."""
    global _registered_in
    if _registered_in == os.getpid():
        return
    is_first = _registered_in == 0
    _registered_in = os.getpid()
    _close_with_multiprocessing(close)
    _close_with_celery(close)
    if is_first:
        _close_before_signals(close)


def _close_with_multiprocessing(close: Callable[[], None]) -> None:
    """Children of multiprocessing call os._exit after their own finalizers."""
    process = sys.modules.get("multiprocessing.process")
    util = sys.modules.get("multiprocessing.util")
    if process is not None and util is not None and process.parent_process() is not None:
        util.Finalize(None, close, exitpriority=0)


def _close_with_celery(close: Callable[[], None]) -> None:
    """Workers of Celery's prefork pool call os._exit after a signal of Celery."""
    signals = sys.modules.get("celery.signals")
    if signals is not None:
        signals.worker_process_shutdown.connect(lambda **_: close(), weak=False, dispatch_uid="spanstatsd")


def _close_before_signals(close: Callable[[], None]) -> None:
    """Uvicorn shuts down gracefully when it gets a signal, and then raises the signal again, which kills the process."""
    raise_signal = signal.raise_signal

    def close_and_raise(signum: Any) -> None:
        if signal.getsignal(signum) is signal.SIG_DFL and signum in (signal.SIGTERM, signal.SIGINT):
            close()
        raise_signal(signum)

    signal.raise_signal = close_and_raise
