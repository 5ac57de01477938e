"""Answers in JSON."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from starlette.responses import Response

NO_STORE = {"cache-control": "no-store"}


def to_json(value: Any) -> bytes:
    """A value as JSON. Numbers that are not finite become null; bytes that are not text become a question mark."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def answer(value: Any, status: int = 200) -> Response:
    """A JSON response."""
    return Response(to_json(value), status, NO_STORE, "application/json")


def error(status: int, sentence: str, headers: dict[str, str] | None = None) -> Response:
    """A response with an error message."""
    return Response(to_json({"error": sentence}), status, NO_STORE | (headers or {}), "application/json")
