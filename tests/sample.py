"""The sample corpus, generated once for all processes of the tests: it takes seconds, and most of them need it."""

from __future__ import annotations

import os
import pickle
from functools import cache
from pathlib import Path

from nmt.corpora.sample import corpus as module
from nmt.corpora.sample.corpus import Draft
from nmt.runtime.files import write_atomically

PLACE = "NMT_TEST_SAMPLE"
"""Environment variable: the file in which the first process stores the corpus."""
_generate = module.corpus


@cache
def stored_corpus() -> dict[str, tuple[Draft, ...]]:
    """What `corpus` generates, from the file if another process has written it."""
    path = Path(os.environ[PLACE])
    if not path.exists():
        content = pickle.dumps(_generate())
        write_atomically(path, lambda beside: beside.write_bytes(content))
    drafts: dict[str, tuple[Draft, ...]] = pickle.loads(path.read_bytes())
    return drafts


def store_corpus() -> None:
    """Have the package take the stored corpus. Call it before anything else imports `corpus`."""
    module.corpus = stored_corpus
