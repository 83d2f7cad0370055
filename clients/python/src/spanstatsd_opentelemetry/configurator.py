"""Switches counting on under opentelemetry-instrument, with OTEL_PYTHON_CONFIGURATOR=spanstatsd."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from opentelemetry.util._importlib_metadata import entry_points

from spanstatsd_opentelemetry.installation import EXPORTER_HEADERS, install_prepared, prepare

log = logging.getLogger("spanstatsd")

NAME = "spanstatsd"  # of the entry point

_HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"
_TRACES_HEADERS = "OTEL_EXPORTER_OTLP_TRACES_HEADERS"


class SpanstatsdConfigurator:
    """Sets up the SDK with the configurator that would be used otherwise, for example that of opentelemetry-distro, and
    counts the spans of its tracer provider. If they can't be counted, it logs a warning and changes nothing."""

    def configure(self, **kwargs: Any) -> None:
        other = _other_configurator()
        try:
            _check_configuration_file()
            processor = prepare()
        except Exception as error:
            log.warning("spanstatsd does not count the spans of this process: %s", error)
            other.configure(**kwargs)
            return
        with _marked_requests():
            other.configure(**kwargs)
        try:
            install_prepared(processor)
        except Exception:
            log.exception(
                "spanstatsd does not count the spans of this process, although exported ones are marked as counted"
            )


def _other_configurator() -> Any:
    """Returns the first other configurator that is installed, or the SDK's."""
    for entry_point in entry_points(group="opentelemetry_configurator"):
        if entry_point.name != NAME:
            return entry_point.load()()
    from opentelemetry.sdk._configuration import _OTelSDKConfigurator

    return _OTelSDKConfigurator()  # type: ignore[no-untyped-call]


@contextmanager
def _marked_requests() -> Iterator[None]:
    """Lets OTLP exporters that are created meanwhile mark their requests as counted. Processes that this one starts do not
    get the changed variable, because they may not count their spans."""
    before = os.environ.get(_TRACES_HEADERS)
    headers = before or os.environ.get(_HEADERS)
    mark = ",".join(f"{name}={value}" for name, value in EXPORTER_HEADERS.items())
    os.environ[_TRACES_HEADERS] = f"{headers},{mark}" if headers else mark
    try:
        yield
    finally:
        if before is None:
            del os.environ[_TRACES_HEADERS]
        else:
            os.environ[_TRACES_HEADERS] = before


def _check_configuration_file() -> None:
    """Raises ValueError if exporters are configured by a file, and their requests are not marked as counted."""
    path = os.environ.get("OTEL_CONFIG_FILE")
    (header,) = EXPORTER_HEADERS
    if path and header not in Path(path).read_text("utf-8").lower():
        raise ValueError(f"{path} configures exporters without the header {header}; add it with the value yes")
