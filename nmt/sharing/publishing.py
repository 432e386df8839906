"""Give a model to others, as one zip (`nmt export`) or on the Hugging Face hub (`nmt push`): the same files in both."""

from __future__ import annotations

import io
import logging
import os
import re
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

from nmt import __version__
from nmt.bundle.folder import Bundle
from nmt.bundle.hub import PREFIX, calling_hub
from nmt.bundle.places import CARD, OPTIONAL, REQUIRED, SUFFIX, find_model
from nmt.errors import UsageError
from nmt.runtime.arguments import as_path
from nmt.runtime.files import write_content
from nmt.sharing.card import describe_corpus, is_written_by_nmt, license_in, model_card

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Upload:
    """What was uploaded.

    Attributes:
        address: the page of the model.
        commit: the commit; the one before if nothing had changed.
    """

    address: str
    commit: str


def export(model: str | os.PathLike[str], output: str | os.PathLike[str], *, license: str | None = None) -> Path:
    """Write a model as one zip, as `nmt export` does: what translating needs, its recorded scores, and a model card.

        nmt.export("runs/mine", "mine.zip")
        nmt.load("mine.zip")

    The same model gives the same bytes under the same name, which its card says. Members are not compressed: weights hardly can be.

    Args:
        model: a model folder, or what else `nmt.load` takes.
        output: the new file; its name ends with `.zip`.
        license: identifier of the model's license, for the card. Default: that of an earlier card, or none.

    Raises:
        DataError: the model cannot be loaded, or the file cannot be written.
        UsageError: the file exists already, its name has another end, or the license is no identifier.
    """
    path = as_path(output, "The output")
    if path.suffix.lower() != SUFFIX:
        raise UsageError(f"{path} must end with {SUFFIX}, by which commands know that it is one file.")
    if path.exists() or path.is_symlink():
        raise UsageError(f"{path} already exists: move it, or choose another name with -o.")
    shared = SharedModel.load(as_path(model, "The model"), license)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as members:
        for name, content in shared.files(path.name).items():
            member = zipfile.ZipInfo(name)  # of 1980, so that bytes depend on no time
            member.create_system, member.external_attr = 3, 0o644 << 16
            members.writestr(member, content)
    write_content(path, archive.getvalue())
    shared.warn()
    return path


def push(model: str | os.PathLike[str], name: str, *, private: bool = False, license: str | None = None) -> Upload:
    """Upload a model to the Hugging Face hub in one commit, as `nmt push` does.

        nmt.push("runs/mine", "owner/name", license="cc-by-4.0")
        nmt.load("hf:owner/name")

    What translating needs is uploaded, with recorded scores and a model card. A README.md in the model folder is the card. Without
    one, nmt writes it; but a card on the hub that was edited by hand stays as it is, with a warning.

    Args:
        model: a model folder, or what else `nmt.load` takes.
        name: `owner/name`; a repository that does not exist is made.
        private: make a private repository.
        license: identifier of the model's license, for the card. Default: that of an earlier card, or none.

    Raises:
        DataError: the model cannot be loaded, or the hub refuses.
        UsageError: the name or the license is wrong, or the repository is public but shall be private.
    """
    repository = check_name(name)
    shared = SharedModel.load(as_path(model, "The model"), license)
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
        files = shared.files(f"{PREFIX}{repository}")
        if shared.card is None and card_on_hub is not None and not is_written_by_nmt(card_on_hub):
            _log.warning("The card on the hub was edited by hand and stays as it is.")
            del files[CARD]
        commit = api.create_commit(
            repository,
            [CommitOperationAdd(path_in_repo=file, path_or_fileobj=content) for file, content in files.items()],
            commit_message=f"Upload {shared.bundle.recipe.name} with nmt {__version__}",
            parent_commit=info.sha,  # fails if somebody changes it meanwhile
        )
    shared.warn()
    return Upload(f"{api.endpoint}/{repository}", commit.oid)


def check_name(name: str) -> str:
    """The name of a repository without `hf:`. Raises UsageError if it is none."""
    repository = name.removeprefix(PREFIX)
    if not re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", repository):
        raise UsageError(f"'{name}' names no repository of the hub: write owner/name.")
    return repository


@dataclass(frozen=True)
class SharedModel:
    """A model that was loaded and checked, and what others get of it."""

    folder: Path
    bundle: Bundle
    license: str | None
    """Identifier of the model's license."""
    card: str | None
    """The README.md in its folder; used as it is."""

    @classmethod
    def load(cls, model: Path, license: str | None = None) -> SharedModel:
        """Load a model; the license is that of a README.md in its folder if none is given.

        Raises:
            DataError: the model cannot be loaded.
            UsageError: the license is no identifier, or another than that of the user's own card.
        """
        if license is not None and not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", license):
            raise UsageError(
                f"'{license}' is no identifier of a license: write it as the hub does, such as mit, cc-by-4.0 or other."
            )
        folder = find_model(model)
        bundle, path = Bundle.load(folder), folder / CARD
        if not path.is_file():
            return cls(folder, bundle, license, None)
        card = path.read_text(encoding="utf-8")
        if license not in (None, license_of_card := license_in(card)):
            raise UsageError(
                f"{path} is your own card, which is used as it is: write `license: {license}` between its lines "
                "`---`, and leave out --license."
            )
        return cls(folder, bundle, license_of_card, card)

    def files(self, address: str) -> dict[str, bytes]:
        """The card and the shared files by name; `address` is what users of the model write for MODEL.

        Raises DataError if a recorded file is damaged.
        """
        card = self.card or model_card(self.bundle, self.folder, self.license, address)
        paths = {name: self.folder / name for name in (*REQUIRED, *OPTIONAL)}
        return {CARD: card.encode(), **{name: path.read_bytes() for name, path in paths.items() if path.is_file()}}

    def warn(self) -> None:
        """Log that the card names no license."""
        if self.license is None:
            licenses = {text.corpus: describe_corpus(text.corpus)[1] for text in self.bundle.recipe.data.corpora}
            _log.warning(
                "The card names no license, so nobody knows whether they may use the model: give --license ID, such as "
                "mit or cc-by-4.0 (training text: %s).",
                "; ".join(f"{corpus}: {license or 'license not known'}" for corpus, license in licenses.items()),
            )
