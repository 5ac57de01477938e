"""SoulsGym's `envs.utils`."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from soulsgym.errors import MisuseError, SoulsError

P = ParamSpec("P")
T = TypeVar("T")
log = logging.getLogger(__name__)


class RetriesExceededError(SoulsError):
    """Something failed as often as it may; Gymnasium had this error until its version 1.0."""


def max_retries(retries: int = 3) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Let a function fail with one of our errors and try again, `retries` times in all."""
    if retries < 1:
        raise MisuseError(f"retries {retries} is not possible; give 1 or more")

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def attempt(*args: P.args, **kwargs: P.kwargs) -> T:
            for number in range(1, retries + 1):
                try:
                    return function(*args, **kwargs)
                except SoulsError as error:
                    last = error
                    log.info("%s failed, %d of %d times: %s", function.__name__, number, retries, error)
            raise RetriesExceededError(f"{function.__name__} failed {retries} times, at last: {last}") from last

        return attempt

    return decorate
