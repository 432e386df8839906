"""Upload a model to the Hugging Face hub: `nmt push`."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt import __version__
from nmt.bundle.hub import PREFIX, calling_hub, hub_package
from nmt.bundle.places import CARD
from nmt.errors import DataError, UsageError
from nmt.runtime.arguments import as_path
from nmt.sharing.card import is_unedited, license_in
from nmt.sharing.shared_files import SharedModel

_NAME = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")


@dataclass(frozen=True)
class Upload:
    """What was uploaded.

    Attributes:
        address: the page of the model.
        commit: the commit; the one before if nothing had changed.
        license: the license of the model, if its owner gave one, now or in an earlier card.
        keeps_card: whether the card on the hub is another than the model's, because nmt did not write it or somebody edited it.
    """

    address: str
    commit: str
    license: str | None
    keeps_card: bool


def push(
    model: str | os.PathLike[str],
    name: str,
    *,
    private: bool = False,
    license: str | None = None,
    replace_card: bool = False,
) -> Upload:
    """Upload a model to the Hugging Face hub in one commit, as `nmt push` does.

        nmt.push("runs/mine", "owner/name", license="cc-by-4.0")
        nmt.load("hf:owner/name")

    What translating needs is uploaded, with recorded scores and a model card. A README.md in the model folder is the card. One
    on the hub that nmt did not write, or that somebody edited, stays as it is.

    Args:
        model: a model folder, or what else `nmt.load` takes.
        name: `owner/name`; a repository that does not exist is made.
        private: make a private repository.
        license: identifier of the model's license, for the card. Default: that of an earlier card, or none.
        replace_card: replace the card on the hub, whoever wrote it.

    Raises:
        DataError: the model cannot be loaded, there is no token, or the hub refuses.
        UsageError: the name or the license is wrong, or the repository is public but shall be private.
    """
    repository = check_name(name)
    shared = SharedModel.load(as_path(model, "The model"), license)
    return upload(shared, repository, private=private, replace_card=replace_card)


def check_name(name: str) -> str:
    """The name of a repository without `hf:`. Raises UsageError if it is none."""
    repository = name.removeprefix(PREFIX)
    if not _NAME.fullmatch(repository):
        raise UsageError(f"'{name}' names no repository of the hub: write owner/name.")
    return repository


def upload(shared: SharedModel, repository: str, *, private: bool, replace_card: bool) -> Upload:
    """Upload a model that was loaded. Raises DataError or UsageError."""
    hub = hub_package()
    denied = "your token may not do that; make one that may write at https://huggingface.co/settings/tokens"
    offline = "try again, which uploads only what is missing"
    with calling_hub(hub, f"Cannot upload to {repository}", offline=offline, denied=denied):
        if hub.get_token() is None:
            raise DataError(
                "The hub has to know who you are: log in with `hf auth login`, or set HF_TOKEN to a token that may write "
                "(https://huggingface.co/settings/tokens)."
            )
        api = hub.HfApi(library_name="nmt", library_version=__version__)
        before = _opened(api, hub.errors, repository, private=private)
        there = _card_on_hub(api, repository, before)
        keeps_card = there is not None and not is_unedited(there) and not replace_card
        if shared.card.license is None and there is not None:
            shared = shared.licensed(license_in(there))
        card = {} if keeps_card else {CARD: shared.card_text(f"{PREFIX}{repository}").encode()}
        files = {**card, **{name: str(path) for name, path in shared.files().items()}}
        commit = api.create_commit(
            repository,
            [hub.CommitOperationAdd(path_in_repo=name, path_or_fileobj=content) for name, content in files.items()],
            commit_message=f"Upload {shared.card.bundle.recipe.name} with nmt {__version__}",
            parent_commit=before.sha,  # fails if somebody changes it meanwhile
        )
        keeps_other = keeps_card and there != shared.card_text(f"{PREFIX}{repository}")
        return Upload(f"{api.endpoint}/{repository}", commit.oid, shared.card.license, keeps_other)


def _opened(api: Any, errors: Any, repository: str, *, private: bool) -> Any:
    """What the hub says of the repository, which is made if it is not there. Raises UsageError if it is public but must not be."""
    try:
        info = api.model_info(repository)
    except errors.RepositoryNotFoundError:
        api.create_repo(repository, private=private)
        return api.model_info(repository)
    if private and not info.private:
        raise UsageError(f"{repository} exists and is public: make it private on its page, or leave out --private.")
    return info


def _card_on_hub(api: Any, repository: str, info: Any) -> str | None:
    """The card that the repository has; None if it has none."""
    if all(file.rfilename != CARD for file in info.siblings or ()):
        return None
    path = Path(api.hf_hub_download(repository, CARD, revision=info.sha))
    return path.read_text(encoding="utf-8", errors="replace")
