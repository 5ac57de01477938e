"""Shared agents on the Hugging Face Hub.

Only files that belong to a shared agent are fetched, by name: no Python file, nothing that would be unpickled, and no
page that a browser would run; the report is written again. What was fetched becomes a run only when all of it is right.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from soulsai.errors import RunError, TransportError
from soulsai.learning.session import update_report
from soulsai.runs.files import cannot_write, write_atomically
from soulsai.runs.run import Run
from soulsai.sharing.agent import MOST_BYTES, pack_agent, read_notes, shared_config
from soulsai.sharing.card import card_of
from soulsai.sharing.verify import refuse_changed
from soulsgym.errors import MisuseError
from soulsgym.packages import require

if TYPE_CHECKING:
    from huggingface_hub import HfApi

    from soulsai.sharing.agent import Progress

REPO = re.compile(r"(?!.*(?:--|\.\.|\.git$))\w(?:[\w.-]{0,94}\w)?/\w(?:[\w.-]{0,94}\w)?", re.ASCII)
"""What the hub takes as the name of a repository."""
FETCHED = re.compile(
    r"config\.toml|versions\.json|status\.json|agent\.json|README\.md|recordings/fight\.npz|evaluations/[\w.-]+\.json"
    r"|checkpoints/\d{12}/(best\.safetensors|state\.json|manifest\.json)"
    r"|data/(boss|variant-\d{1,6})/[\w-][\w. -]*\.toml"
)
"""The files of a shared agent."""
MOST_FILES = 200


def check_repo(repo: str) -> str:
    """Refuse what cannot be the name of a repository."""
    if not REPO.fullmatch(repo):
        raise MisuseError(f"{repo!r} does not name a repository; give USER/NAME, such as alice/iudex")
    return repo


def push(
    run: Run, repo: str, folder: Path, *, fights: int, private: bool = False, progress: Progress | None = None
) -> str:
    """Measure the policy of a run, write it with a model card into `folder`, and upload that; the address of its page.

    What else is in the repository stays, but for older policies.
    """
    require("huggingface_hub")
    from huggingface_hub import get_token

    api = _api(check_repo(repo))
    if get_token() is None:
        raise TransportError(f"{repo}: you are not logged in to the hub; run hf auth login, or set HF_TOKEN")
    agent = pack_agent(run, folder, fights=fights, progress=progress)
    notes, config = read_notes(agent), shared_config(agent)
    write_atomically(folder / "README.md", card_of(agent, notes, config, repo))
    plain = notes.measured[0]
    with _name_hub_errors(repo):
        url = api.create_repo(repo, private=private, exist_ok=True)
        api.upload_folder(
            repo_id=repo,
            folder_path=folder,
            commit_message=f"{plain.rate:.1%} of {plain.fights:,} fights against {notes.boss}",
            delete_patterns=["checkpoints/*", "data/*", "evaluations/*"],
        )
    return str(url)


def pull(repo: str, folder: Path, revision: str | None = None) -> Run:
    """Fetch a shared agent into a new folder; RunError if it is not what its checksums say."""
    api = _api(check_repo(repo))
    if folder.exists():
        raise RunError(f"{folder} exists; choose another folder with --run, or remove it: souls runs rm {folder}")
    aside = folder.with_name(f".{folder.name}.{os.getpid()}.pull")
    try:
        aside.mkdir(parents=True)  # what is wrong with the disk is not taken for the hub's fault
        _fetch(api, repo, revision, aside)
        run = Run.open(aside)
        refuse_changed(run, read_notes(run))
        shared_config(run)
        update_report(run)
        os.replace(aside, folder)
    except OSError as error:
        raise cannot_write(folder, error) from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return Run.open(folder)


def _fetch(api: HfApi, repo: str, revision: str | None, folder: Path) -> None:
    with _name_hub_errors(repo):
        info = api.model_info(repo, revision=revision, files_metadata=True)
    files = [file for file in info.siblings or () if FETCHED.fullmatch(file.rfilename)]
    if "agent.json" not in [file.rfilename for file in files]:
        raise RunError(f"{repo} holds no agent that souls push made (it has no agent.json); give another repository")
    if len(files) > MOST_FILES or sum(file.size or 0 for file in files) > MOST_BYTES:
        raise RunError(f"{repo} is too large for an agent: at most {MOST_FILES} files and {MOST_BYTES >> 20} MB")
    with _name_hub_errors(repo):
        for file in files:
            api.hf_hub_download(repo, file.rfilename, revision=info.sha, local_dir=folder)
    shutil.rmtree(folder / ".cache", ignore_errors=True)


def _api(repo: str) -> HfApi:
    require("huggingface_hub")
    from huggingface_hub import HfApi
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    return HfApi(endpoint=os.environ.get("HF_ENDPOINT"), library_name="soulsai")


@contextmanager
def _name_hub_errors(repo: str) -> Iterator[None]:
    """What goes wrong on the way to the hub and back, in a sentence."""
    from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError

    # Of the HTTP library that this version uses, or of the system.
    unreachable = cast("tuple[type[BaseException], ...]", HfHubHTTPError.__bases__)
    try:
        yield
    except RevisionNotFoundError as error:
        raise TransportError(f"{repo}: the hub has no such revision; leave out --revision for the newest") from error
    except RepositoryNotFoundError as error:
        raise TransportError(
            f"{repo}: the hub has no such repository, or you cannot access it: check the name, or run hf auth login"
        ) from error
    except HfHubHTTPError as error:
        status = error.response.status_code
        if status in (401, 403):
            raise TransportError(
                f"{repo}: the hub refuses you; run hf auth login, or use a token that may write"
            ) from error
        raise TransportError(f"{repo}: the hub answers with an error ({status}): try again later") from error
    except unreachable as error:
        raise TransportError(f"{repo}: the hub cannot be reached ({error}): check the network, try again") from error
