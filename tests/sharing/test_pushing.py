"""Models on the hub: pushed, loaded, and every way in which that fails."""

import re
import shutil
from pathlib import Path

import pytest

import nmt
from nmt.cli import app
from nmt.errors import DataError
from tests.robustness import tiny
from tests.sharing.conftest import Hub, Repository

NAME = "ann/mine"
PUSHED = "README.md data.json metrics.jsonl recipe.yaml source.model target.model weights.safetensors".split()


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
    repository = hub.repositories[NAME]
    assert (upload.address, upload.commit) == (f"https://hub/{NAME}", "2")
    assert sorted(set(repository.commits[-1]) - {".gitattributes"}) == PUSHED
    assert results(f"hf:{NAME}") == results(run)
    assert "license: mit" in card(hub)
    assert nmt.push(run, NAME) == upload
    assert len(repository.commits) == 2  # the first one, and all files at once


def test_no_other_file_is_downloaded_and_a_revision_is_that_version(hub: Hub, run: Path) -> None:
    nmt.push(run, NAME, private=True)
    assert hub.repositories[NAME].private
    hub.repositories[NAME].add({"pickle.bin": b"no", "recipe.yaml": b"name: broken"})
    assert results(f"hf:{NAME}@2") == results(run)
    with pytest.raises(DataError, match=r"recipe\.yaml"):
        nmt.load(f"hf:{NAME}")
    assert "pickle.bin" not in {path.name for path in hub.folder.rglob("*")}


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            OSError("401 Client Error.\n\nInvalid username or password.\n"),
            "401 Client Error. Invalid username or password.",
        ),
        (ConnectionError(), "ConnectionError."),
    ],
)
def test_a_refusal_is_one_line(hub: Hub, run: Path, error: Exception, message: str) -> None:
    hub.error = error
    with pytest.raises(DataError) as raised:
        nmt.push(run, NAME)
    assert str(raised.value) == f"Cannot upload to ann/mine: {message}"
    with pytest.raises(DataError) as raised:
        nmt.load(f"hf:{NAME}@v2")
    assert str(raised.value) == f"Cannot load hf:ann/mine@v2: {message}"
    assert hub.repositories == {}


def test_what_cannot_be_loaded_or_pushed_is_refused_in_one_line(
    hub: Hub, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Arguments, the exit status, and what the message must name."""
    hub.repositories["ann/bert"] = Repository()
    hub.repositories["ann/bert"].add({"config.json": b"{}", "recipe.yaml": b"a"})
    damaged = run.with_name("damaged")
    shutil.copytree(run, damaged)
    weights = damaged / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    cases: list[tuple[list[object], int, str]] = [
        (["info", "hf:mine"], 2, "'hf:mine' names no model of the hub: write hf:owner/name"),
        (["info", "hf:a b/c"], 2, "'hf:a b/c' names no model of the hub: write hf:owner/name"),
        (["push", run, "mine"], 2, "'mine' names no repository of the hub: write owner/name."),
        (["push", run, "../b"], 2, "'../b' names no repository of the hub: write owner/name."),
        (["info", "hf:ann/bert"], 1, "hf:ann/bert is no model of nmt"),
        (["info", "hf:ann/nothing"], 1, "Cannot load hf:ann/nothing: "),
        (["push", run, "ann/bert", "--private"], 2, "ann/bert exists and is public: make it private on its page"),
        (["push", damaged, NAME], 1, "is damaged"),
        (["push", run / "none", NAME], 1, "There is no model folder"),
    ]
    for arguments, expected, named in cases:
        status, out, err = command(capsys, *arguments)
        assert (status, out) == (expected, ""), arguments
        assert named in err
        assert err.count("\n") == 1


# --- the card -----------------------------------------------------------------------------------------------------


def card(hub: Hub) -> str:
    return hub.repositories[NAME].commits[-1]["README.md"].decode()


def test_a_card_on_the_hub_is_written_anew_unless_it_was_edited(
    hub: Hub, run: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def retrain(bleu: str) -> None:
        log = run / "metrics.jsonl"
        log.write_text(re.sub(r'"bleu": [\d.]+', f'"bleu": {bleu}', log.read_text()))

    nmt.push(run, NAME, license="mit")
    retrain("32.5")
    nmt.push(run, NAME)
    assert "BLEU 32.50" in card(hub)
    assert "license: mit" in card(hub)  # as in the card that was there
    assert caplog.messages == []
    retrain("33.5")
    for edited in (card(hub).replace("## Use", "## How we use it"), card(hub) + "More.\n", "By hand."):
        hub.repositories[NAME].add({"README.md": edited.encode()})
        nmt.push(run, NAME, license="mit")
        assert caplog.messages.pop().startswith("The card on the hub was edited by hand and stays as it is")
        assert card(hub) == edited


def test_a_card_of_ones_own_is_used_as_it_is(hub: Hub, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for card_of_user in ("---\nlicense: mit\n---\n# Mine\n", "---\nlicense: mit\n---\n# Mine, again\n"):
        (run / "README.md").write_text(card_of_user)
        nmt.push(run, NAME)
        assert card(hub) == card_of_user
    status, _, err = command(capsys, "push", run, NAME, "--license", "cc0-1.0")
    assert status == 2
    assert "README.md is your own card, which is used as it is: write `license: cc0-1.0`" in err
