"""What every test shares: checked shapes, one thread, a cache of its own, and the public corpora where they are at hand."""

import gc
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from jaxtyping import install_import_hook

from tests import shapes

# Before anything of nmt is imported: annotated shapes and types are checked in the first calls of each test.
_alignment = ["nmt.alignment.corpus_links", "nmt.alignment.translation"]
_training = [f"nmt.training.{name}" for name in ("guidance", "losses", "scheduled_sampling", "update")]
CHECKED = ["nmt.model", "nmt.fast", "nmt.search", "nmt.decoding", "nmt.data.batching", *_alignment, *_training]
"""Packages and modules of nmt; a module that moves is renamed here."""
for _module in CHECKED:
    _path = Path(__file__).resolve().parents[1] / _module.replace(".", "/")
    assert _path.is_dir() or _path.with_suffix(".py").is_file(), (
        f"{_module} is not there, so its shapes would go unchecked"
    )
_hook = install_import_hook([*CHECKED, "classifier"], "tests.shapes.check_first_calls")

# How long an example takes depends on what else the machine does.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")

# A shell's background ignores SIGINT and nohup SIGHUP; what tests start would inherit that.
for _number, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, _handler)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name tests by no bytes: those of an archive tell the time, and every process must collect the same names."""
    return argname if isinstance(val, bytes) else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    shapes.renew()


_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "corpora"


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache folder that ends with the tests, for this process and for those it starts; the kernels are in it.

    torch is imported here, after the hook, and not in the process that only hands out the tests.
    """
    import torch

    from nmt.fast.kernels.build import prepare_kernels

    torch.set_num_threads(1)
    folder, shared = tmp_path_factory.mktemp("cache"), tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent  # of all workers, which compile the kernels once
    (shared / "native").mkdir(exist_ok=True)
    (folder / "native").symlink_to(shared / "native")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NMT_CACHE", str(folder))
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setattr(os, "fsync", lambda _: None)  # only a power failure could tell, and each takes milliseconds
        patch.setenv("SACREBLEU", str(folder / "sacrebleu"))  # which sacreBLEU reads once, when it is imported
        prepare_kernels()
        gc.collect()
        gc.freeze()  # later collections need not visit what was imported
        yield folder


@pytest.fixture(scope="session")
def corpora() -> Path:
    """The root of the public corpora, `$NMT_CORPORA` or `../shared/corpora`; without it the test is skipped."""
    root = Path(os.environ.get("NMT_CORPORA") or _BESIDE)
    if not root.is_dir():
        pytest.skip(f"needs the public corpora: there is no folder {root}; set NMT_CORPORA")
    return root


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium, which `$NMT_CHROMIUM` or the search path names; without one the test is skipped."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    path = os.environ.get("NMT_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip("needs a Chromium: set NMT_CHROMIUM or install one")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()
