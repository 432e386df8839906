"""Upload a model to the Hugging Face hub: `nmt push`."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

from nmt import __version__
from nmt.bundle.hub import PREFIX, calling_hub
from nmt.bundle.places import CARD
from nmt.errors import UsageError
from nmt.runtime.arguments import as_path
from nmt.sharing.exporting import SharedModel, license_in


@dataclass(frozen=True)
class Upload:
    """What was uploaded.

    Attributes:
        address: the page of the model.
        commit: the commit; the one before if nothing had changed.
        license: the license of the model, if its owner gave one, now or in an earlier card.
        keeps_card: whether the card on the hub differs from the model's, and stays.
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

    What translating needs is uploaded, with recorded scores and a model card. A README.md in the model folder is the card. A
    card on the hub that differs from it stays as it is, since somebody may have edited it.

    Args:
        model: a model folder, or what else `nmt.load` takes.
        name: `owner/name`; a repository that does not exist is made.
        private: make a private repository.
        license: identifier of the model's license, for the card. Default: that of an earlier card, or none.
        replace_card: replace the card on the hub.

    Raises:
        DataError: the model cannot be loaded, or the hub refuses.
        UsageError: the name or the license is wrong, or the repository is public but shall be private.
    """
    repository = check_name(name)
    shared = SharedModel.load(as_path(model, "The model"), license)
    return upload(shared, repository, private=private, replace_card=replace_card)


def check_name(name: str) -> str:
    """The name of a repository without `hf:`. Raises UsageError if it is none."""
    repository = name.removeprefix(PREFIX)
    if not re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", repository):
        raise UsageError(f"'{name}' names no repository of the hub: write owner/name.")
    return repository


def upload(shared: SharedModel, repository: str, *, private: bool, replace_card: bool) -> Upload:
    """Upload a model that was loaded. Raises DataError or UsageError."""
    with calling_hub(f"Cannot upload to {repository}"):
        from huggingface_hub import CommitOperationAdd, HfApi

        api = HfApi(library_name="nmt", library_version=__version__)
        api.create_repo(repository, private=private or None, exist_ok=True)
        info = api.model_info(repository)
        if private and not info.private:
            raise UsageError(f"{repository} exists and is public: make it private on its page, or leave out --private.")
        card_on_hub = None
        if any(file.rfilename == CARD for file in info.siblings or ()):
            card_on_hub = Path(api.hf_hub_download(repository, CARD, revision=info.sha)).read_text(encoding="utf-8")
            shared = replace(shared, license=shared.license or license_in(card_on_hub))
        card = shared.card(f"{PREFIX}{repository}")
        keeps_card = card_on_hub not in (None, card) and not replace_card
        files = {name: str(path) for name, path in shared.files().items()}
        operations = [CommitOperationAdd(path_in_repo=name, path_or_fileobj=path) for name, path in files.items()]
        if not keeps_card:
            operations.append(CommitOperationAdd(path_in_repo=CARD, path_or_fileobj=card.encode()))
        commit = api.create_commit(
            repository,
            operations,
            commit_message=f"Upload {shared.bundle.recipe.name} with nmt {__version__}",
            parent_commit=info.sha,  # fails if somebody changes it meanwhile
        )
        return Upload(f"{api.endpoint}/{repository}", commit.oid, shared.license, keeps_card)
