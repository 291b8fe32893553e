"""What can go wrong between us and a provider, in our words: those of libraries may hold secrets."""

from __future__ import annotations

import os
import ssl

import aiohttp
from aiohttp.http import HttpProcessingError
from aiohttp.http_exceptions import ContentEncodingError

from proxy.wire.answer import (
    ANSWER_TOO_LONG,
    CONNECT_FAILURE,
    CONNECT_TIMEOUT,
    CONNECTION_LOST,
    DNS_FAILURE,
    PROTOCOL_ERROR,
    READ_TIMEOUT,
    TLS_FAILURE,
    Failure,
    one_line,
)


class AnswerTooLong(aiohttp.ClientError):
    """An answer has more bytes than are read of one; the argument says how many those are."""


READ_ERRORS = (aiohttp.ClientError, HttpProcessingError, OSError)
"""All that a request to a provider, or reading its answer, can raise (timeouts are OSError)."""


def explain(exc: BaseException, where: str) -> Failure:
    """What one of READ_ERRORS means. `where` is the provider's address as it may be shown."""
    if isinstance(exc, AnswerTooLong):
        return _error(ANSWER_TOO_LONG, f"the provider's answer is longer than {exc}: no more was read")
    if isinstance(exc, aiohttp.ClientConnectorDNSError):
        return _error(DNS_FAILURE, f"cannot find the host of the provider {where}")
    if isinstance(exc, (aiohttp.ClientSSLError, ssl.SSLError, aiohttp.ServerFingerprintMismatch)):
        return _error(TLS_FAILURE, f"no TLS connection with the provider {where}: {_tls_reason(exc)}")
    if isinstance(exc, aiohttp.ConnectionTimeoutError):
        return _error(CONNECT_TIMEOUT, f"the provider {where} does not accept connections")
    if isinstance(exc, TimeoutError):
        return _abort(READ_TIMEOUT, "the provider fell silent before its answer was whole")
    if isinstance(exc, aiohttp.ClientConnectorError):
        reason = os.strerror(exc.errno) if exc.errno else "no connection"
        return _error(CONNECT_FAILURE, f"cannot connect to the provider {where}: {reason}")
    if isinstance(exc.__cause__, ContentEncodingError):
        return _error(PROTOCOL_ERROR, f"the answer of the provider {where} cannot be decompressed")
    if isinstance(exc, (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, OSError)):
        return _abort(CONNECTION_LOST, "the provider closed the connection before its answer was whole")
    return _error(PROTOCOL_ERROR, f"the provider {where} does not answer in proper HTTP")


def _tls_reason(exc: BaseException) -> str:
    cause = getattr(exc, "certificate_error", None) or getattr(exc, "os_error", None) or exc
    return one_line(str(cause), 200)


def _error(error_type: str, text: str) -> Failure:
    return Failure("provider_error", error_type, text)


def _abort(error_type: str, text: str) -> Failure:
    return Failure("provider_abort", error_type, text)
