"""What went wrong, in one form for all: application/problem+json (RFC 9457) with a sentence.

An error of the library becomes a problem here and nowhere else. What nobody foresaw is a 500
without a text: other libraries quote what they were given.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fastapi.responses import Response

from dpregions.errors import (
    CRSError,
    DPRegionsError,
    MissingExtraError,
    PrivacyError,
    QueryError,
    printable,
)

MEDIA_TYPE = "application/problem+json"

_TITLES = {
    "body": "The body cannot be read",
    "confidence": "The confidence is out of range",
    "covert": "A covert release has no intervals",
    "unknown-crs": "The CRS is unknown, or does not fit",
    "host": "This server does not answer to that name",
    "input": "The request cannot be answered",
    "media-type": "The body is of another kind",
    "method": "The route has no such method",
    "not-finite": "A number is not finite",
    "not-found": "There is nothing here",
    "parameter": "A parameter cannot be read",
    "query": "The query cannot be answered",
    "reversed": "The rectangle is reversed",
    "too-large": "The request is too large",
    "too-long": "The answer takes too long",
    "too-many": "Too many requests at once",
    "token": "A token is missing or wrong",
    "unforeseen": "The server failed",
    "warming": "The release is being prepared",
}

_OF_ERRORS: tuple[tuple[type[DPRegionsError], str, int], ...] = (
    (MissingExtraError, "not-found", 404),
    (CRSError, "unknown-crs", 422),
    (PrivacyError, "query", 422),
    (QueryError, "query", 422),
    (DPRegionsError, "input", 422),
)


class Problem(Exception):
    """A request that cannot be answered, and why.

    Parameters
    ----------
    kind : str
        What kind of problem it is: the last part of its `type`.
    status : int
        Of HTTP.
    detail : str
        A sentence: what was wrong, with the value, and the remedy.
    parameter : str, optional
        The parameter of the request that it is about.
    headers : mapping, optional
        For the response.
    """

    def __init__(
        self,
        kind: str,
        status: int,
        detail: str,
        *,
        parameter: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.kind, self.status, self.detail = kind, status, printable(detail)
        self.parameter, self.headers = parameter, dict(headers or {})

    @classmethod
    def of(cls, error: DPRegionsError) -> Problem:
        """Return an error of the library as a problem."""
        kind, status = next(
            (kind, status) for known, kind, status in _OF_ERRORS if isinstance(error, known)
        )
        return cls(kind, status, str(error), parameter=error.argument)

    def response(self, path: str) -> Response:
        """Return what is sent: `path` is that of the request, without its query."""
        said: dict[str, Any] = {
            "type": f"/problems/{self.kind}",
            "title": _TITLES[self.kind],
            "status": self.status,
            "detail": self.detail,
            "instance": path,
        }
        if self.parameter is not None:
            said["parameter"] = self.parameter
        headers = {"Cache-Control": "no-store"} | self.headers
        return Response(json.dumps(said), self.status, headers, MEDIA_TYPE)
