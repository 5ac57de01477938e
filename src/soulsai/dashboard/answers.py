"""Answers in JSON."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from starlette.responses import Response

NO_STORE = {"cache-control": "no-store"}


def encoded(value: Any) -> bytes:
    """A value as JSON; numbers that are not finite are null, and what is no text in names of files becomes a ?."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def answer(value: Any, status: int = 200) -> Response:
    """An answer with a value."""
    return Response(encoded(value), status, NO_STORE, "application/json")


def error(status: int, sentence: str, headers: dict[str, str] | None = None) -> Response:
    """An answer that says what is wrong."""
    return Response(encoded({"error": sentence}), status, NO_STORE | (headers or {}), "application/json")
