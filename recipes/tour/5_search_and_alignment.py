# %% [markdown]
# # 5. Search and alignment
#
# A trained model gives probabilities of next words. Two questions remain: which sentence should be written, and which words of it belong to
# which words of the source? The first is search, the second alignment. This page answers both, first on a table of a few numbers, then with
# a small translator.

# %%
import math
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import torch

import nmt
from nmt.alignment.error_rate import error_rate
from nmt.alignment.links import GoldLinks
from nmt.data import sample

SHORT = "NMT_TOUR_SHORT" in os.environ  # a few updates, to see that the page runs

# %% [markdown]
# ## A language of six words
#
# Here the next word depends on the last one alone. "the" is the likelier beginning, but what follows it is open; after "a" all is clear.

# %%
WORDS = ["PAD", "UNK", "<s>", "</s>", "the", "a", "cat", "dog", "sleeps", "barks"]
NEXT = {
    "<s>": {"the": 0.6, "a": 0.4},
    "the": {"cat": 0.55, "dog": 0.45},
    "a": {"dog": 0.95, "cat": 0.05},
    "cat": {"</s>": 0.52, "sleeps": 0.48},
    "dog": {"barks": 0.9, "</s>": 0.1},
    "sleeps": {"</s>": 1.0},
    "barks": {"</s>": 1.0},
}

# %% [markdown]
# ## Greedy and beam search
#
# Greedy search takes the most probable word at each step. Beam search keeps the $K$ best beginnings, extends each by every word, and keeps
# the $K$ best again. Here it is in full.


# %%
@dataclass(frozen=True)
class Beginning:
    words: tuple[str, ...]
    log_probability: float

    @property
    def is_finished(self) -> bool:
        return self.words[-1] == "</s>"


def beam_search(size: int) -> tuple[list[Beginning], list[list[Beginning]]]:
    """The finished sentences, best first, and the candidates of each step, best first."""
    live, finished, steps = [Beginning(("<s>",), 0.0)], [], []
    while live:
        candidates = [
            Beginning((*old.words, word), old.log_probability + math.log(probability))
            for old in live
            for word, probability in NEXT[old.words[-1]].items()
        ]
        candidates.sort(key=lambda candidate: -candidate.log_probability)
        steps.append(candidates)
        finished += [candidate for candidate in candidates[:size] if candidate.is_finished]
        live = [candidate for candidate in candidates[:size] if not candidate.is_finished]
    return sorted(finished, key=lambda candidate: -candidate.log_probability), steps


for size in (1, 2):
    best = beam_search(size)[0][0]
    print(f"beam {size}: {' '.join(best.words[1:-1]):15} probability {math.exp(best.log_probability):.3f}")

# %% [markdown]
# Greedy search is led astray by the first word. With two beginnings alive, the better sentence survives its weaker start. The same from
# `nmt.search`, which knows no model, only a step function:


# %%
@dataclass
class Nothing:
    """A state or memory without content."""

    def select(self, _: Any) -> "Nothing":
        return self


@dataclass
class Result:
    log_probs: torch.Tensor
    weights: torch.Tensor
    state: Nothing


table = torch.zeros(len(WORDS), len(WORDS))
for word, following in NEXT.items():
    for other, probability in following.items():
        table[WORDS.index(word), WORDS.index(other)] = probability


def step(tokens: torch.Tensor, _state: Nothing, _memory: Nothing, _rows: torch.Tensor) -> Result:
    return Result(table[tokens].log(), torch.ones(len(tokens), 1), Nothing())


for size in (1, 2):
    search = nmt.search.Search(nmt.search.SearchOptions(beam_size=size, length_penalty=0.0))
    [[found]] = search.run(step, Nothing(), Nothing(), torch.tensor([6]))
    print(
        f"beam {size}: {' '.join(WORDS[index] for index in found.ids):15} probability {math.exp(found.log_probability):.3f}"
    )
    assert math.isclose(found.log_probability, beam_search(size)[0][0].log_probability, rel_tol=1e-5)

# %% [markdown]
# ## The tree grows
#
# One panel per step. Blue beginnings are alive, green ones are finished, grey ones were dropped: the beam had no room for them.

# %%
steps = beam_search(2)[1]
fig, axes = plt.subplots(1, len(steps), figsize=(13, 3.4), sharey=True, layout="constrained")
for number, axis in enumerate(axes, start=1):
    places: dict[tuple[str, ...], tuple[float, float]] = {("<s>",): (0.0, 0.0)}
    axis.text(0, 0, "<s>", ha="center", va="center", bbox={"boxstyle": "round", "fc": "white", "ec": "#1f5ab4"})
    for depth, candidates in enumerate(steps[:number], start=1):
        for rank, candidate in enumerate(candidates):
            color = "#b0b0b0" if rank >= 2 else "#2ca02c" if candidate.is_finished else "#1f5ab4"
            places[candidate.words] = x, y = float(depth), -float(rank)
            start = places[candidate.words[:-1]]
            axis.plot([start[0], x], [start[1], y], color=color, zorder=0)
            label = f"{candidate.words[-1]}\n{math.exp(candidate.log_probability):.2f}"
            axis.text(
                x,
                y,
                label,
                ha="center",
                va="center",
                fontsize=8,
                bbox={"boxstyle": "round", "fc": "white", "ec": color},
            )
    axis.set(title=f"step {number}", xlim=(-0.5, len(steps) + 0.5), ylim=(-3.6, 0.6))
    axis.axis("off")
plt.show()

# %% [markdown]
# ## Long or short
#
# Every further word makes a sentence less probable, so search prefers short ones. A length penalty divides the log-probability by
# $((5 + |y|) / 6)^\alpha$ (Wu et al. 2016, equation 14). The finished sentences of a beam of four, with and without it:

# %%
finished = beam_search(4)[0]
for alpha in (0.0, 2.0):
    ranked = sorted(
        finished, key=lambda sentence: -sentence.log_probability / ((5 + len(sentence.words) - 1) / 6) ** alpha
    )
    print(f"alpha {alpha}:", *(" ".join(sentence.words[1:-1]) for sentence in ranked[:4]), sep="\n    ")

# %% [markdown]
# ## A translator
#
# Now a small model of the embedded sample, as on page 2, and its five best translations of a sentence. The score is the log-probability
# over the length penalty.

# %%
folder = Path(tempfile.mkdtemp()) / "model"
sizes = ["model.embedding=64", "model.embedding_scale=8", "model.encoder.hidden=64", "model.decoder.hidden=128"]
training = [
    *(f"training.updates={20 if SHORT else 700}", "training.schedule.warmup=50"),
    *("training.optimizer.rate=6e-3", "training.validation.metrics=perplexity"),
    *("model.attention.score.size=64", "model.decoder.readout.size=64"),
]
nmt.train(nmt.load_recipe("quickstart", ["model.dropout=0", *sizes, *training]), folder, device="cpu", quiet=True)
translator = nmt.load(folder, "cpu", beam_size=5)
line = "In the afternoon the neighbour listens to Paul."
for hypothesis in translator.translate(line, n_best=5).hypotheses:
    print(f"{hypothesis.score:6.2f}  {hypothesis.text}")

# %% [markdown]
# ## Forced scoring
#
# The model can also be asked how probable a *given* translation is: the decoder is fed its words instead of its own. A wrong word, here the
# wrong person, costs probability.

# %%
right, wrong = "Am Nachmittag hört der Nachbar Paul zu.", "Am Nachmittag hört der Nachbar Maria zu."
for text in (right, wrong):
    print(f"{translator.score((line, text)).hypotheses[0].log_probability:8.2f}  {text}")

# %% [markdown]
# ## Attention and posterior
#
# Attention looks *before* the word is written: $\alpha_{tj}$ says where the decoder read, to find out which word comes next. Once the word
# $y_t$ is known, a better question can be asked: reading which position alone would have made this word probable? That is the posterior,
#
# $$p(j \mid y_t) \propto \alpha_{tj} \; p(y_t \mid y_{<t}, \text{position } j \text{ alone})$$

# %%
views = {name: translator.score((line, right), posterior=name == "posterior") for name in ("attention", "posterior")}
fig, axes = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
for axis, (name, scored) in zip(axes, views.items(), strict=True):
    shown = scored.word_alignment()
    axis.imshow(shown.weights, cmap="Blues", vmin=0, vmax=1)
    axis.set_xticks(range(len(shown.source)), shown.source, rotation=45, ha="left")
    axis.set_yticks(range(len(shown.target)), shown.target)
    axis.xaxis.tick_top()
    axis.set_xlabel(name)
plt.show()

# %% [markdown]
# ## How wrong is an alignment?
#
# Against gold links, sure ones $S$ and possible ones $P$, links $A$ have the alignment error rate (Och and Ney 2003)
#
# $$\mathrm{AER} = 1 - \frac{|A \cap S| + |A \cap P|}{|A| + |S|}$$
#
# The grammar of the sample knows the links of its sentences, all of them sure.

# %%
examples = list(sample.examples("test"))[: 20 if SHORT else 300]
pairs = [(example.source, example.target) for example in examples]
gold = [GoldLinks(frozenset(example.links), frozenset(example.links)) for example in examples]
links = {name: [item.links for item in translator.score(pairs, posterior=name == "posterior")] for name in views}
own, sure = links["attention"][0], gold[0].sure
by_hand = 1 - 2 * len(own & sure) / (len(own) + len(sure))
assert math.isclose(by_hand, error_rate([own], [gold[0]]).aer)
print(f"first sentence, attention: {len(own)} links, {len(sure)} gold, {len(own & sure)} in both: AER {by_hand:.1%}")
for name, each in links.items():
    print(f"{name:10} AER {error_rate(each, gold).aer:.1%} of {len(gold)} sentences")

# %% [markdown]
# The posterior makes fewer errors than the attention of the same model. `nmt align` uses it, and can join both directions.
#
# ## Exercises
#
# 1. How many candidates does a step with a beam of $K$ compare, if the vocabulary has $V$ words?
# 2. Give a beam of 1, 2, 4 to the translator. Does the score of its best translation ever fall?
#
# ## Answers

# %%
print("1. for example K = 5, V = 1000:", 5 * 1000)
for size in (1, 2, 4):
    print(f"2. beam {size}: {translator.translate(line, beam_size=size).score:.3f}")

# %% [markdown]
# 1. $K V$, of which $K$ stay.
# 2. A larger beam usually finds a better score, but it is no guarantee: a beginning that leads to the best sentence can be crowded out.
