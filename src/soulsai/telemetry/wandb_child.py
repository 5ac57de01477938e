"""The process that gives the metrics of a run to Weights & Biases: rows come in as lines of JSON, news goes out.

It ends by itself when its input ends, which is also how it notices that the training was killed, and within limits.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import IO, Any

from soulsai.telemetry.beside import step_back

REACH_S = 5.0
INIT_S = 15.0
FINISH_S = 60.0
HANGS_S = 30.0
"""Beyond the limits that W&B is told, before its process is ended whatever it does."""
LONGEST_REASON = 200


class Unreached(Exception):
    """The server does not answer."""


def main() -> None:
    """Read the opening, then rows until the end."""
    step_back()
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    lines, news = sys.stdin.buffer, os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)  # Whatever W&B prints goes to the log.
    opening = json.loads(lines.readline())
    with limit(2 * INIT_S + HANGS_S):
        run = begin(opening, news)
    closed = False
    for line in lines:
        message = json.loads(line)
        closed = message.get("close", False)
        if not closed:
            run.log(message["values"], step=message["step"])
    with limit(FINISH_S + HANGS_S):
        run.finish(exit_code=0 if closed else 1)
    news.close()
    os._exit(0)  # All is done; what W&B wants to do when Python ends may take long where its server hangs.


@contextlib.contextmanager
def limit(seconds: float) -> Iterator[None]:
    """End this process if it takes longer."""
    timer = threading.Timer(seconds, os._exit, (1,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def begin(opening: dict[str, Any], news: IO[str]) -> Any:
    """The run at W&B; kept on the disk only if there is no key or no way to reach it."""
    import wandb

    try:
        reach(wandb.setup().settings)
        run = _init(opening, None)
    except Exception as error:  # Of many kinds, by what is missing.
        reason = str(error).split("\n")[0][:LONGEST_REASON].strip() or type(error).__name__
        if not isinstance(error, Unreached):
            wandb.teardown(exit_code=1)  # Its own process would not let the same run begin twice.
        run = _init(opening, "offline")
        tell(news, f"wandb goes on without its server ({reason.rstrip('.')}); later: wandb sync {sync_folder(run)}")
        return run
    if run.settings.mode == "online":
        tell(news, f"wandb: {run.url}")
    else:
        tell(news, f"wandb {wandb.__version__} writes to the disk only ({run.settings.mode}); later: wandb sync "
             f"{sync_folder(run)}")  # fmt: skip
    return run


def reach(settings: Any) -> None:
    """Unreached unless its server answers soon, whatever it answers: W&B itself may take very long to find that out."""
    if settings.mode not in (None, "online"):
        return
    try:
        urllib.request.urlopen(str(settings.base_url), timeout=REACH_S).close()
    except urllib.error.HTTPError:
        return
    except urllib.error.URLError as error:
        raise Unreached(f"{settings.base_url} does not answer: {error.reason}") from error
    except OSError as error:
        raise Unreached(f"{settings.base_url} does not answer: {error}") from error


def sync_folder(run: Any) -> str:
    """Where W&B keeps the run on the disk."""
    return str(run.settings.sync_dir)


def tell(news: IO[str], text: str) -> None:
    """A line for whoever trains; nobody may be there any more."""
    with contextlib.suppress(OSError):
        news.write(text.replace("\n", " ") + "\n")


def _init(opening: dict[str, Any], mode: Any) -> Any:
    import wandb

    settings = wandb.Settings(
        silent=True,
        console="off",
        disable_code=True,
        disable_git=True,
        init_timeout=INIT_S,
        finish_timeout=FINISH_S,
        finish_timeout_raises=False,
        x_disable_stats=True,
    )
    return wandb.init(
        project=opening["project"],
        name=opening["name"],
        id=opening["id"],
        config=opening["config"],
        dir=opening["folder"],
        mode=mode,
        resume=None if mode == "offline" else "allow",
        reinit="create_new",
        settings=settings,
    )


if __name__ == "__main__":
    main()
