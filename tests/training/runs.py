"""The outcome of a run without its time figures, for comparing runs."""

import hashlib
import json
from pathlib import Path
from typing import Any

from nmt.training.folder import LOCK, STATE, load_state
from nmt.training.log import METRICS


def timeless(run: Path) -> list[dict[str, Any]]:
    """The records of a run without its time figures."""
    records = map(json.loads, (run / METRICS).read_text().splitlines())
    return [{key: value for key, value in record.items() if "second" not in key} for record in records]


def outcome(run: Path) -> dict[str, Any]:
    """Hashes of all files of a run by name; for records and state, their content without time figures."""
    files = {
        str(path.relative_to(run)): path for path in sorted(run.rglob("*")) if path.is_file() and path.name != LOCK
    }
    hashes: dict[str, Any] = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    state = load_state(run)
    groups = (state.weights, state.average, state.optimizer, state.generators)
    progress = {**state.progress, "seconds": 0, "update_seconds": 0}
    digests = [
        {name: hashlib.sha256(value.numpy().tobytes()).hexdigest() for name, value in group.items()} for group in groups
    ]
    return {**hashes, METRICS: timeless(run), STATE: (progress, state.text, digests)}
