"""Where nobody knows of a home folder, as in a container that runs as a foreign user."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from nmt.errors import DataError
from nmt.runtime.cache import cache_folder, expand_home, home_folder
from tests.training import toy

ROOT = Path(__file__).resolve().parents[2]
FOREIGN = 54321
AS_FOREIGN = ["unshare", "--user", f"--map-user={FOREIGN}", "--"]
COMMANDS = [
    ["--help"],
    ["recipe", "list"],
    ["corpora", "list"],
    ["train", "recipe.yaml", "--out", "run", "--quiet", "--threads", "1"],
    ["info", "run"],
    ["translate", "run", "-i", "valid.src", "-o", "translations", "--threads", "1"],
    ["evaluate", "run", "--quiet", "--threads", "1"],
    ["plot", "run", "a b", "--target", "b a", "-o", "plot.png"],
    ["average", "run"],
]
RUN_ALL = f"""
import sys
from nmt.cli import main
for command in {COMMANDS!r}:
    sys.argv = ["nmt", *command]
    try:
        main()
    except SystemExit as end:
        assert not end.code, (command, end.code)
"""


@pytest.fixture
def homeless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder, for a process that has no home folder. Returns the folder that stands in for it."""

    def fail() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", fail)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in ("NMT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / f"nmt-{os.getuid()}"


def test_a_private_folder_stands_in_for_the_home(homeless: Path) -> None:
    assert home_folder() == homeless
    assert cache_folder() == homeless / ".cache" / "nmt"
    assert stat.S_IMODE(homeless.stat().st_mode) == 0o700
    assert home_folder() == homeless  # it may exist


def test_a_folder_that_others_prepared_is_not_used(homeless: Path, tmp_path: Path) -> None:
    homeless.mkdir()
    homeless.chmod(0o777)
    with pytest.raises(DataError, match=r"others can write to .*: set HOME to a folder of your own\."):
        home_folder()
    homeless.rmdir()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    homeless.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError, match="set HOME to a folder of your own"):
        home_folder()
    homeless.unlink()
    homeless.write_text("a file")
    with pytest.raises(DataError, match="There is no home folder: set HOME to a folder of your own"):
        home_folder()


def test_the_home_of_nobody_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NMT_CACHE", "~no-such-user/cache")
    with pytest.raises(DataError, match=r"~no-such-user/cache starts with a home folder that does not exist"):
        cache_folder()
    assert expand_home("/a/b") == Path("/a/b")


@pytest.mark.slow
def test_commands_run_as_a_user_without_a_password_entry(tmp_path: Path) -> None:
    if (
        not shutil.which("unshare")
        or subprocess.run([*AS_FOREIGN, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("needs `unshare --user` to run as another user")
    toy.write_reversal(tmp_path, pairs=60, held_out=8)
    training = {"updates": 2, "epochs": 1, "batch_tokens": 128, "validation": {"every": 1, "keep_best": 2}}
    recipe = toy.recipe(tmp_path, training=training).model_dump_json()
    (tmp_path / "recipe.yaml").write_text(recipe.replace('"test":null', f'"test":"{tmp_path}/valid"'))
    (tmp_path / "temporary").mkdir()
    known = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "NMT_NATIVE": "0"}
    ended = subprocess.run(
        [*AS_FOREIGN, sys.executable, "-c", RUN_ALL],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**known, "TMPDIR": str(tmp_path / "temporary"), "OMP_NUM_THREADS": "1"},
    )
    assert ended.returncode == 0, ended.stderr
    assert "nmt: " not in ended.stderr
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert len((tmp_path / "translations").read_text().splitlines()) == 8
    assert not (tmp_path / "~").exists()
    assert (tmp_path / "temporary" / f"nmt-{FOREIGN}" / ".cache" / "nmt").is_dir()
