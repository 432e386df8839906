"""Small `model` sections of a recipe, as the plain trees that both the reference and nmt read."""

from itertools import product

ORDERS = {
    "bahdanau": {"kind": "attend-then-update", "conditional": False},
    "bahdanau-conditional": {"kind": "attend-then-update", "conditional": True},
    "luong": {"kind": "update-then-attend", "input_feeding": False},
    "luong-feeding": {"kind": "update-then-attend", "input_feeding": True},
}
SCORES = ("additive", "dot", "general", "concat", "location", "none")
WINDOWS = ("global", "local-m", "local-p")
CELLS = ("gru", "lstm")
READOUTS = ("maxout", "tanh", "attentional")
BRIDGES = ("backward", "final", "mean", "zero")

ATTENTIONS = [pair for pair in product(SCORES, WINDOWS) if pair[0] != "none" or pair[1] == "global"]
"""Every score with every window that it can have."""

SCORE_SIZES = {"additive": {"size": 4}, "concat": {"size": 4}, "location": {"max_source": 6}}


def small(
    *,
    score: str = "additive",
    window: str = "global",
    half_width: int = 1,
    order: str = "bahdanau",
    cell: str = "gru",
    layers: int = 1,
    readout: str = "maxout",
    bridge: str = "backward",
    tie: str = "none",
    embedding: int = 3,
    annotation: int = 4,
    hidden: int | None = None,
    dropout: dict | float = 0.0,
) -> dict:
    """A model of a few hundred weights, no two of its widths alike unless a setting asks for it."""
    return {
        "embedding": embedding,
        "tie": tie,
        "encoder": {"cell": cell, "hidden": annotation // 2, "layers": layers},
        "attention": {
            "score": {"kind": score, **SCORE_SIZES.get(score, {})},
            "window": {"kind": window} | ({} if window == "global" else {"half_width": half_width}),
        },
        "decoder": {
            "cell": cell,
            "hidden": hidden or (annotation if score == "dot" else annotation + 1),
            "layers": layers,
            "order": ORDERS[order],
            "readout": {"kind": readout, "size": embedding if tie != "none" else 2},
            "bridge": bridge,
        },
        "dropout": dropout,
    }
