"""Small `model` sections of recipes, as plain dicts that both the reference and nmt read."""

from itertools import product
from typing import Any

Tree = dict[str, Any]
"""A section of a recipe as a plain dict."""

ORDERS = {
    "bahdanau": {"kind": "attend-then-update", "conditional": False},
    "bahdanau-conditional": {"kind": "attend-then-update", "conditional": True},
    "luong": {"kind": "update-then-attend", "input_feeding": False},
    "luong-feeding": {"kind": "update-then-attend", "input_feeding": True},
}
NORMALIZERS = ("softmax", "sparsemax", "entmax15")
SCORES = ("additive", "dot", "general", "concat", "location", "none")
WINDOWS = ("global", "local-m", "local-p")
CELLS = ("gru", "gru-reset-before", "lstm")
READOUTS = ("maxout", "tanh", "attentional", "state")
BRIDGES = ("backward", "final", "mean", "copy", "zero")
DIRECTIONS = ("both", "forward", "reversed")

ATTENTIONS = [pair for pair in product(SCORES, WINDOWS) if pair[0] != "none" or pair[1] == "global"]
"""Every valid pair of score and window."""

SCORE_SIZES = {"additive": {"size": 4}, "concat": {"size": 4}, "location": {"max_source": 6}}

SWITCHES: dict[str, Tree] = {
    "forward": {"direction": "forward", "bridge": "final", "layers": 2},
    "reversed": {"direction": "reversed", "layers": 2, "cell": "lstm"},
    "residual": {"residual": True, "layers": 3},
    "residual-lstm": {"residual": True, "layers": 2, "cell": "lstm", "bridge": "mean"},
    "layer-norm": {"layer_norm": True, "layers": 2},
    "layer-norm-lstm": {"layer_norm": True, "layers": 2, "cell": "lstm"},
    "copy": {"bridge": "copy", "layers": 2},
    "copy-lstm": {"bridge": "copy", "layers": 2, "cell": "lstm"},
    "copy-lstm-reversed-normed": {"bridge": "copy", "cell": "lstm", "direction": "reversed", "layer_norm": True},
    "heads": {"heads": 2, "score": "dot"},
    "heads-local-p": {"heads": 2, "score": "general", "window": "local-p"},
    "coverage": {"coverage": True},
    "coverage-concat": {"coverage": True, "score": "concat", "window": "local-m"},
    "coverage-dot": {"coverage": True, "score": "dot"},
    "heads-coverage": {"heads": 2, "coverage": True},
    "heads-coverage-local-p": {"heads": 2, "coverage": True, "window": "local-p"},
    "scaled": {"embedding_scale": 1.7, "layers": 2},
    "ratio": {"window": "local-m", "ratio": 1.5},
    "feed-scale": {"feed_scale": 0.9},
    "lexical": {"lexical": True, "bridge": "mean", "embedding_scale": 1.7},
}
"""Arguments of `small` for each extension of the papers' models, and for pairs of extensions that interact."""


def small(
    *,
    score: str = "additive",
    window: str = "global",
    half_width: int = 1,
    ratio: float = 1.0,
    normalizer: str = "softmax",
    heads: int = 1,
    coverage: bool = False,
    order: str = "bahdanau",
    cell: str = "gru",
    layers: int = 1,
    decoder_cell: str | None = None,
    decoder_layers: int | None = None,
    direction: str = "both",
    residual: bool = False,
    layer_norm: bool = False,
    readout: str = "maxout",
    bridge: str = "backward",
    tie: str = "none",
    embedding: int = 3,
    embedding_scale: float = 1.0,
    annotation: int = 4,
    hidden: int | None = None,
    feed_scale: float | None = None,
    lexical: bool = False,
    dropout: Tree | float = 0.0,
) -> Tree:
    """A model of a few hundred weights, whose widths all differ unless a setting needs equal ones.

    Cell and layers of the decoder are those of the encoder by default.
    """
    stack = {"cell": cell, "layers": layers, "residual": residual, "layer_norm": layer_norm}
    windows: dict[str, Tree] = {
        "global": {},
        "local-m": {"half_width": half_width, "ratio": ratio},
        "local-p": {"half_width": half_width},
    }
    same_width = score == "dot" or bridge == "copy"
    width = hidden or annotation + (0 if same_width else heads)
    if readout == "state" and tie != "none":
        embedding = width
    feeding = {"feed_scale": feed_scale} if ORDERS[order]["kind"] == "update-then-attend" else {}
    return {
        "embedding": embedding,
        "tie": tie,
        "embedding_scale": embedding_scale,
        "encoder": {**stack, "hidden": annotation // 2 if direction == "both" else annotation, "direction": direction},
        "attention": {
            "score": {"kind": score, **SCORE_SIZES.get(score, {})},
            "window": {"kind": window, **windows[window]},
            "normalizer": normalizer,
            "heads": heads,
            "coverage": coverage,
        },
        "decoder": {
            **stack,
            "cell": decoder_cell or cell,
            "layers": decoder_layers or layers,
            "hidden": width,
            "order": {**ORDERS[order], **feeding},
            "readout": {"kind": readout, "size": width if readout == "state" else embedding if tie != "none" else 2},
            "bridge": bridge,
        },
        "lexical": lexical,
        "dropout": dropout,
    }
