"""The shortest recipe there is, and the sentence that refuses one."""

from pathlib import Path

import pytest

from nmt.errors import UsageError
from nmt.recipe import load_recipe

MINIMAL = 'name: small\ndata: {source: en, target: de, train: "sample:train", valid: "sample:valid"}\n'


def refusal(path: Path | str, *overrides: str) -> str:
    with pytest.raises(UsageError) as caught:
        load_recipe(path, overrides)
    return str(caught.value)
