"""Models on the hub: pushed, loaded, and every way in which that fails."""

import re
import shutil
from pathlib import Path

import pytest

import nmt
from nmt.cli import app
from nmt.errors import DataError, UsageError
from nmt.sharing.card import is_unedited
from tests.robustness import tiny
from tests.sharing.hub import READ_TOKEN, Hub

NAME = "ann/mine"
PUSHED = [
    "README.md",
    "data.json",
    "metrics.jsonl",
    "recipe.yaml",
    "source.model",
    "target.model",
    "weights.safetensors",
]


def command(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """The status, stdout and stderr of a command in this process, where the stand-in is known."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        app([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return int(str(ended.value.code)), out, err


def results(model: object) -> list[tuple[str, float]]:
    translator = nmt.load(model, device="cpu")  # type: ignore[arg-type]
    return [(item.text, item.score) for item in translator.translate(tiny.TEXT)]


def test_a_pushed_model_translates_as_before(hub: Hub, run: Path) -> None:
    upload = nmt.push(run, NAME, license="mit")
    commit = hub.repositories[NAME].commits[-1]
    assert upload.address == f"{hub.address}/{NAME}"
    assert upload.commit == commit.sha
    assert sorted(set(commit.files) - {".gitattributes"}) == PUSHED
    assert commit.large == {"source.model", "target.model", "weights.safetensors"}
    assert len(hub.repositories[NAME].commits) == 2  # the first one, and all files at once
    assert results(f"hf:{NAME}") == results(run)
    assert "license: mit" in commit.files["README.md"].decode()


def test_no_other_file_is_downloaded(hub: Hub, run: Path) -> None:
    nmt.push(run, NAME)
    hub.repositories[NAME].add({"pickle.bin": b"no", "recipe.yaml.orig": b"no", "sub/recipe.yaml": b"no"})
    nmt.load(f"hf:{NAME}", device="cpu")
    names = {line.rpartition("/")[2] for line in hub.asked("GET /ann/mine/resolve")}
    assert "weights.safetensors" in names
    assert names < {*PUSHED} - {"README.md"}  # both sides have the same subwords, which are fetched once


def test_revisions_are_branches_tags_and_commits(hub: Hub, run: Path) -> None:
    first = nmt.push(run, NAME)
    hub.repositories[NAME].tags["v1"] = first.commit
    hub.repositories[NAME].add({"recipe.yaml": b"name: broken"})
    for revision in ("v1", first.commit):
        assert results(f"hf:{NAME}@{revision}") == results(run)
    with pytest.raises(DataError, match=r"recipe\.yaml"):
        nmt.load(f"hf:{NAME}")
    with pytest.raises(DataError, match="Cannot load hf:ann/mine@v2: there is no such revision; name a branch, a tag"):
        nmt.load(f"hf:{NAME}@v2")


def test_what_was_loaded_once_is_there_without_a_connection(
    hub: Hub, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nmt.push(run, NAME)
    expected = results(f"hf:{NAME}")
    count = len(hub.requests)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    assert results(f"hf:{NAME}") == expected
    assert len(hub.requests) == count
    with pytest.raises(
        DataError, match=r"Cannot load hf:ann/other: there is no connection to http.*; without one, load"
    ):
        nmt.load("hf:ann/other")
    with pytest.raises(
        DataError, match=r"Cannot upload to ann/mine: there is no connection to http.*; try again, which"
    ):
        nmt.push(run, NAME)


def test_an_interrupted_download_is_a_sentence_and_continues(hub: Hub, run: Path) -> None:
    nmt.push(run, NAME)
    hub.cut["weights.safetensors"] = [1000] * 50
    with pytest.raises(DataError, match=r"^Cannot load hf:ann/mine: "):
        nmt.load(f"hf:{NAME}")
    hub.cut.clear()
    assert results(f"hf:{NAME}") == results(run)


@pytest.mark.parametrize("name", ["hf:mine", "hf:", "hf:a/b/c", "hf:a/b@", "hf:a b/c"])
def test_a_name_that_is_none_is_refused_before_anything_is_asked(hub: Hub, name: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"'{name}' names no model of the hub: write hf:owner/name")):
        nmt.load(name)
    assert hub.requests == []


def test_a_repository_that_is_no_model_of_nmt_is_refused(hub: Hub) -> None:
    hub.repository("ann/bert").add({"config.json": b"{}", "recipe.yaml": b"a"})
    with pytest.raises(DataError, match=r"hf:ann/bert is no model of nmt, or .*: it lacks source\.model, target"):
        nmt.load("hf:ann/bert")


def test_private_and_gated_models_need_a_token(hub: Hub, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nmt.push(run, NAME, private=True)
    assert hub.repositories[NAME].private
    monkeypatch.setenv("HF_TOKEN", READ_TOKEN)
    assert results(f"hf:{NAME}") == results(run)
    hub.repositories["ann/gated"] = hub.repositories[NAME]
    hub.repositories["ann/gated"].gated = True
    with pytest.raises(DataError, match="its owner decides who may read it; ask for access on its page"):
        nmt.load("hf:ann/gated")
    monkeypatch.delenv("HF_TOKEN")
    hub.repositories["ann/hidden"] = hub.repositories[NAME]
    with pytest.raises(DataError, match="there is no such model, or you may not read it; check the name, or log in"):
        nmt.load("hf:ann/hidden")


@pytest.mark.parametrize(
    ("token", "sentence"),
    [
        (None, "The hub has to know who you are: log in with `hf auth login`, or set HF_TOKEN"),
        ("hf_wrong", "Cannot upload to ann/mine: the hub does not know your token; log in"),
        (READ_TOKEN, "Cannot upload to ann/mine: your token may not do that; make one that may write"),
    ],
)
def test_pushing_needs_a_token_that_may_write(
    hub: Hub, run: Path, monkeypatch: pytest.MonkeyPatch, token: str | None, sentence: str
) -> None:
    monkeypatch.delenv("HF_TOKEN")
    if token is not None:
        monkeypatch.setenv("HF_TOKEN", token)
    with pytest.raises(DataError, match=re.escape(sentence)):
        nmt.push(run, NAME)
    assert hub.repositories == {}


@pytest.mark.parametrize("place", ["/api/models/ann/mine", "preupload", "info/lfs", "PUT /lfs", "commit/main"])
@pytest.mark.parametrize(("status", "sentence"), [(500, "the hub has a problem (HTTP 500)"), (403, "may not do that")])
def test_a_refusal_at_any_step_is_a_sentence(hub: Hub, run: Path, place: str, status: int, sentence: str) -> None:
    hub.repository(NAME)
    hub.broken[place] = [status] * 100
    with pytest.raises(DataError, match=f"Cannot upload to ann/mine: .*{re.escape(sentence)}"):
        nmt.push(run, NAME)
    assert len(hub.repositories[NAME].commits) == 1


def test_an_interrupted_push_can_be_repeated(hub: Hub, run: Path) -> None:
    hub.broken["commit/main"] = [500] * 100
    with pytest.raises(DataError):
        nmt.push(run, NAME)
    hub.broken.clear()
    uploads = hub.asked("PUT /lfs")
    nmt.push(run, NAME)
    assert results(f"hf:{NAME}") == results(run)
    assert hub.asked("PUT /lfs") == uploads  # what had arrived stays


def test_a_change_at_the_same_time_is_not_overwritten(hub: Hub, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = hub.repository(NAME)
    load = nmt.sharing.pushing._card_on_hub

    def changed_meanwhile(*arguments: object) -> object:
        repository.add({"README.md": b"by a colleague"})
        return load(*arguments)

    monkeypatch.setattr("nmt.sharing.pushing._card_on_hub", changed_meanwhile)
    with pytest.raises(DataError, match="it was changed at the same time; try again"):
        nmt.push(run, NAME)
    assert repository.commits[-1].files["README.md"] == b"by a colleague"


def test_pushing_twice_makes_one_commit(hub: Hub, run: Path) -> None:
    first, second = nmt.push(run, NAME), nmt.push(run, NAME)
    assert first.commit == second.commit
    assert len(hub.repositories[NAME].commits) == 2


# --- the card -----------------------------------------------------------------------------------------------------


def card(hub: Hub) -> str:
    return hub.repositories[NAME].commits[-1].files["README.md"].decode()


def test_a_card_of_nmt_follows_the_model_and_keeps_its_license(hub: Hub, run: Path) -> None:
    nmt.push(run, NAME, license="cc-by-4.0")
    log = run / "metrics.jsonl"
    log.write_text(log.read_text().replace("31.256", "32.5"))
    nmt.push(run, NAME)
    assert is_unedited(card(hub))
    assert "BLEU 32.50" in card(hub)
    assert "license: cc-by-4.0" in card(hub)


def test_a_card_that_was_edited_on_the_hub_stays(
    hub: Hub, run: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    nmt.push(run, NAME, license="mit")
    edited = card(hub).replace("## Use", "## How we use it")
    hub.repositories[NAME].add({"README.md": edited.encode()})
    assert command(capsys, "push", run, NAME) == (0, f"{hub.address}/{NAME}\n", "")
    [warning] = caplog.messages
    assert warning.startswith(
        "The card on the hub is not nmt's or was edited, so it stays as it is: --replace-card rep"
    )
    assert card(hub) == edited
    assert command(capsys, "push", run, NAME, "--replace-card") == (0, f"{hub.address}/{NAME}\n", "")
    assert is_unedited(card(hub))
    assert "license: mit" in card(hub)


def test_a_card_of_ones_own_is_used_as_it_is(hub: Hub, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = "---\nlicense: mit\n---\n# Mine\n"
    (run / "README.md").write_text(own)
    assert not nmt.push(run, NAME).keeps_card
    assert card(hub) == own
    assert command(capsys, "push", run, NAME) == (0, f"{hub.address}/{NAME}\n", "")
    status, _, err = command(capsys, "push", run, NAME, "--license", "cc0-1.0")
    assert status == 2
    assert "README.md is your own card, which is used as it is: write `license: cc0-1.0`" in err
    (run / "README.md").write_text(own + "More.\n")
    assert nmt.push(run, NAME).keeps_card  # the one on the hub is not nmt's either
    assert card(hub) == own
    assert (run / "README.md").read_text() == own + "More.\n"


def test_a_public_repository_does_not_get_what_shall_be_private(hub: Hub, run: Path) -> None:
    hub.repository(NAME)
    with pytest.raises(UsageError, match="ann/mine exists and is public: make it private on its page, or leave out"):
        nmt.push(run, NAME, private=True)
    assert len(hub.repositories[NAME].commits) == 1


# --- commands -----------------------------------------------------------------------------------------------------


def test_a_dry_run_prints_card_and_files_and_asks_nobody(
    hub: Hub, run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_TOKEN")
    status, out, err = command(capsys, "push", run, f"hf:{NAME}", "--dry-run", "--license", "mit")
    assert (status, err) == (0, "")
    assert "nmt translate hf:ann/mine -i input.en -o output.de" in out
    listed = [line.split() for line in out.splitlines()[-8:]]
    assert sorted(name for _, name in listed[:-1]) == PUSHED
    assert listed[-1][1:] == ["bytes", "in", "7", "files"]
    assert hub.requests == []


def test_commands_take_models_of_the_hub(hub: Hub, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nmt.push(run, NAME)
    status, out, err = command(capsys, "info", f"hf:{NAME}")
    assert (status, err) == (0, "")
    assert "BLEU 31.26, perplexity 4.50 at update 9" in out
    status, out, err = command(capsys, "shortlist", f"hf:{NAME}")
    assert (status, err) == (
        2,
        "nmt: hf:ann/mine is no folder that a shortlist can be added to: name a file with -o.\n",
    )
    status, _, err = command(capsys, "translate", "hf:ann/nothing")
    assert status == 1
    assert err.startswith("nmt: Cannot load hf:ann/nothing: there is no such model, or you may not read it; check")


@pytest.mark.parametrize("name", ["mine", "hf:mine", "a/b/c", "../b", "a/b c"])
def test_a_name_that_is_no_repository_is_refused(run: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    expected = f"nmt: '{name}' names no repository of the hub: write owner/name.\n"
    assert command(capsys, "push", run, name) == (2, "", expected)


def test_a_damaged_model_is_not_pushed(hub: Hub, run: Path) -> None:
    weights = run / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    with pytest.raises(DataError, match="is damaged"):
        nmt.push(run, NAME)
    shutil.rmtree(run)
    with pytest.raises(DataError, match="There is no model folder"):
        nmt.push(run, NAME)
    assert hub.requests == []


def test_a_refusal_while_loading_asks_for_no_right_to_write(hub: Hub) -> None:
    hub.repository(NAME)
    hub.broken["GET /api/models"] = [403] * 9
    with pytest.raises(DataError, match=r"Cannot load hf:ann/mine: you may not read it; check that your token may"):
        nmt.load("hf:ann/mine")


def test_a_limit_of_requests_is_waited_for_and_said(hub: Hub, run: Path, caplog: pytest.LogCaptureFixture) -> None:
    nmt.push(run, NAME)
    hub.broken["GET /ann/mine/resolve/"] = [429, 429]
    assert results(f"hf:{NAME}") == results(run)
    sentence = "The hub limits how often it is asked (HTTP 429): waiting before the next try."
    assert [record.getMessage() for record in caplog.records] == [sentence, sentence]


@pytest.mark.parametrize("error", [ConnectionError, RuntimeError])
def test_a_refusal_of_the_storage_is_not_a_missing_connection(
    hub: Hub, run: Path, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Xet, which loads large files, raises errors without a response."""

    def refuse(*_: object, **__: object) -> None:
        raise error("Request failed: HTTP status client error (403 Forbidden) for url (https://storage.example/a)")

    monkeypatch.setattr("huggingface_hub.snapshot_download", refuse)
    with pytest.raises(DataError, match="Cannot load hf:ann/mine: the storage of the hub refuses it \\(HTTP 403\\)"):
        nmt.load(f"hf:{NAME}")
