"""Models on the hub: pushed, loaded, and every way in which that fails."""

import shutil
from pathlib import Path

import pytest

import nmt
from nmt.cli import app
from nmt.errors import DataError
from nmt.sharing.shared_files import SharedModel
from tests.robustness import tiny
from tests.sharing.hub import READ_TOKEN, Hub

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of huggingface_hub's calls of httpx
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
    with pytest.raises(DataError, match=r"Cannot load hf:ann/mine@v2: .*Revision Not Found"):
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
    for failing in (lambda: nmt.load("hf:ann/other"), lambda: nmt.push(run, NAME)):
        with pytest.raises(DataError, match=r"^Cannot (load hf:ann/other|upload to ann/mine): .+") as raised:
            failing()
        assert "\n" not in str(raised.value)


def test_private_models_need_a_token(hub: Hub, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nmt.push(run, NAME, private=True)
    assert hub.repositories[NAME].private
    monkeypatch.setenv("HF_TOKEN", READ_TOKEN)
    assert results(f"hf:{NAME}") == results(run)
    hub.repositories["ann/hidden"] = hub.repositories[NAME]
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(DataError, match=r"Cannot load hf:ann/hidden: .*401"):
        nmt.load("hf:ann/hidden")


@pytest.mark.parametrize("token", [None, "hf_wrong", READ_TOKEN])
def test_pushing_needs_a_token_that_may_write(
    hub: Hub, run: Path, monkeypatch: pytest.MonkeyPatch, token: str | None
) -> None:
    monkeypatch.delenv("HF_TOKEN")
    if token is not None:
        monkeypatch.setenv("HF_TOKEN", token)
    with pytest.raises(DataError, match=r"^Cannot upload to ann/mine: .*40[13]"):
        nmt.push(run, NAME)
    assert hub.repositories == {}


@pytest.mark.parametrize("place", ["/api/models/ann/mine", "PUT /lfs", "commit/main"])
def test_a_refusal_at_any_step_is_one_line_and_the_next_push_goes_on(hub: Hub, run: Path, place: str) -> None:
    hub.repository(NAME)
    hub.broken[place] = [500] * 100
    with pytest.raises(DataError, match=r"^Cannot upload to ann/mine: .*500") as raised:
        nmt.push(run, NAME)
    assert "\n" not in str(raised.value)
    assert len(hub.repositories[NAME].commits) == 1
    hub.broken.clear()
    nmt.push(run, NAME)
    assert results(f"hf:{NAME}") == results(run)


def test_a_change_at_the_same_time_is_not_overwritten(hub: Hub, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = hub.repository(NAME)
    files = SharedModel.files

    def changed_meanwhile(shared: SharedModel) -> dict[str, Path]:
        repository.add({"README.md": b"by a colleague"})
        return files(shared)

    monkeypatch.setattr(SharedModel, "files", changed_meanwhile)
    with pytest.raises(DataError, match=r"Cannot upload to ann/mine: .*412"):
        nmt.push(run, NAME)
    assert repository.commits[-1].files["README.md"] == b"by a colleague"


def test_pushing_twice_makes_one_commit(hub: Hub, run: Path) -> None:
    first, second = nmt.push(run, NAME), nmt.push(run, NAME)
    assert first.commit == second.commit
    assert len(hub.repositories[NAME].commits) == 2


def test_what_cannot_be_loaded_or_pushed_is_refused_in_one_line(
    hub: Hub, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Arguments, the exit status, and what the message must name."""
    hub.repository("ann/bert").add({"config.json": b"{}", "recipe.yaml": b"a"})
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
    return hub.repositories[NAME].commits[-1].files["README.md"].decode()


def test_a_card_on_the_hub_that_differs_stays_until_it_shall_be_replaced(
    hub: Hub, run: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    nmt.push(run, NAME, license="mit")
    assert not nmt.push(run, NAME).keeps_card  # the license is that of the card there
    edited = card(hub).replace("## Use", "## How we use it")
    hub.repositories[NAME].add({"README.md": edited.encode()})
    log = run / "metrics.jsonl"
    log.write_text(log.read_text().replace("31.256", "32.5"))
    assert command(capsys, "push", run, NAME) == (0, f"{hub.address}/{NAME}\n", "")
    [warning] = caplog.messages
    assert warning.startswith(
        "The card on the hub differs from the new one and stays as it is: --replace-card replaces"
    )
    assert card(hub) == edited
    assert command(capsys, "push", run, NAME, "--replace-card") == (0, f"{hub.address}/{NAME}\n", "")
    assert "## Use" in card(hub)
    assert "BLEU 32.50" in card(hub)
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
    assert nmt.push(run, NAME).keeps_card
    assert card(hub) == own
    assert (run / "README.md").read_text() == own + "More.\n"


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
