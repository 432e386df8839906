"""The bilingual lexicon: `lexicon.yaml` has its entries, the modules read them, once, on import."""

from pathlib import Path
from typing import Any

import yaml

ENTRIES: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("lexicon.yaml").read_text(encoding="utf-8"))
"""The sections of the file by name; the head of the file explains the notation."""
