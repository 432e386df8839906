# %% [markdown]
# # 2. Bahdanau et al. 2015
#
# *Neural Machine Translation by Jointly Learning to Align and Translate* ([arXiv](https://arxiv.org/abs/1409.0473)) compares two
# translators. `RNNencdec` squeezes a sentence into one vector of fixed length; `RNNsearch` keeps a vector for each word and attends to
# them. This page trains a small one of each, follows a sentence through the equations of the second, and ends with the two pictures of the
# paper: an alignment, and how each model does on longer sentences.
#
# It is not the paper's experiment: the text is the embedded sample, generated sentences of an English-German grammar, and the models have
# about a tenth of the paper's width. `recipes/papers` has the systems as printed.

# %%
import inspect
import os
import tempfile
from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import sacrebleu
import torch

import nmt
from nmt.model import RecurrentModel
from nmt.model.readout import MaxoutReadout
from nmt.model.scores import AdditiveScore

SHORT = "NMT_TOUR_SHORT" in os.environ  # a few updates, to see that the page runs
FOLDER = Path(tempfile.mkdtemp())
SIZES = ["model.embedding=64", "model.embedding_scale=8", "model.encoder.hidden=64", "model.decoder.hidden=128"]
TRAINING = [
    *(f"training.updates={20 if SHORT else 500}", "training.schedule.warmup=50"),
    *("training.optimizer.rate=6e-3", "training.validation.metrics=perplexity"),
]
ATTENTION = ["model.attention.score.size=64", "model.decoder.readout.size=64"]
NO_ATTENTION = ["model.attention.score=none", "model.decoder.bridge=final", "model.decoder.readout.size=64"]

for name, settings in (("attention", ATTENTION), ("none", NO_ATTENTION)):
    recipe = nmt.load_recipe("quickstart", ["model.dropout=0", *SIZES, *TRAINING, *settings])  # too short to overfit
    result = nmt.train(recipe, FOLDER / name, device="cpu", quiet=True)
    print(f"{name}: {result.updates} updates")

# %% [markdown]
# ## The encoder: annotations
#
# A GRU reads the sentence from left to right, another from right to left, and their states side by side are the annotation of each word:
#
# $$h_j = [\overrightarrow{h}_j ; \overleftarrow{h}_j] \qquad \text{(section 3.2)}$$
#
# So each annotation knows the whole sentence, and best what stands around its word.

# %%
line = "The old teacher does not open the kitchen window today."
bundle = nmt.Bundle.load(FOLDER / "attention")
model = bundle.model
assert isinstance(model, RecurrentModel)
model.eval()
ids = torch.tensor([[*bundle.source.encode(line), 3]])  # 3 is the end mark
mask = torch.ones_like(ids, dtype=torch.bool)
with torch.no_grad():
    memory = model.encode(ids, mask)
print("tokens:     ", *bundle.source.tokens(ids[0, :-1].tolist()), "</s>")
print("annotations:", tuple(memory.attention.annotations.shape), "= sentences, tokens, two directions of 64")
print("keys U h_j: ", tuple(memory.attention.keys.shape), "computed once per sentence")

# %% [markdown]
# ## The alignment model
#
# $$e_{ij} = v_a^\top \tanh(W_a s_{i-1} + U_a h_j) \qquad \text{(A.1.2)}$$
#
# Here are the lines of `nmt.model.scores`, and the same in NumPy with the weights that were trained, for the first word to be written.

# %%
print(inspect.getsource(AdditiveScore.forward))
attention = model.decoder.attention
score = attention.score
assert isinstance(score, AdditiveScore)


def array(tensor: torch.Tensor) -> np.ndarray:
    values: np.ndarray = tensor.detach().double().numpy()
    return values


state = model.start(memory)
s = array(state.hidden[0, -1])
annotations = array(memory.attention.annotations[0])
scores = (
    np.tanh(array(score.query.weight) @ s + array(score.query.bias) + annotations @ array(score.key.weight).T)
    @ array(score.v.weight)[0]
)

# %% [markdown]
# Softmax makes weights of the scores (equation 6), and the context is the mean of the annotations under them (equation 5).

# %%
alpha = np.exp(scores) / np.exp(scores).sum()
context = alpha @ annotations
with torch.no_grad():
    step = model.step(torch.tensor([2]), state, memory, torch.tensor([0]))  # 2 begins a sentence
assert np.allclose(alpha, array(step.weights[0]), atol=1e-5)
for token, weight in zip([*bundle.source.tokens(ids[0, :-1].tolist()), "</s>"], alpha, strict=True):
    print(f"{token:12} {weight:.3f} {'#' * round(40 * weight)}")

# %% [markdown]
# ## The decoder
#
# $$s_i = f(s_{i-1}, y_{i-1}, c_i) \quad \text{(section 3.1)} \qquad
# p(y_i \mid y_{<i}, x) = g(y_{i-1}, s_i, c_i) \quad \text{(equation 4)}$$
#
# $f$ is a GRU (A.1.1). It begins with $s_0 = \tanh(W_s \overleftarrow{h}_1)$, and $g$ with a maxout layer (A.2.2): of each pair of
# numbers the larger one stays.

# %%
print(inspect.getsource(MaxoutReadout.forward))

# %% [markdown]
# Step by step, each time with the most probable token, the decoder writes the sentence. The column on the right is the source token with
# the largest weight.

# %%
source_tokens, last, state = [*bundle.source.tokens(ids[0, :-1].tolist()), "</s>"], 2, model.start(memory)
for _ in range(30):
    with torch.no_grad():
        step = model.step(torch.tensor([last]), state, memory, torch.tensor([0]))
    probabilities, state = array(step.log_probs[:])[0], step.state
    last, read = int(probabilities.argmax()), int(step.weights[0].argmax())
    written = "</s>" if last == 3 else bundle.target.tokens([last])[0]
    print(f"{written:14} probability {np.exp(probabilities[last]):.2f}   reads {source_tokens[read]}")
    if last == 3:
        break

# %% [markdown]
# ## An alignment (Figure 3)
#
# The weights of all steps, one row each, merged from tokens to words. The model was never told which words translate each other.

# %%
searching, encoding = (nmt.load(FOLDER / name, "cpu") for name in ("attention", "none"))
shown = searching.translate(line).word_alignment()
fig, axis = plt.subplots(figsize=(5.2, 4.6), layout="constrained")
axis.imshow(shown.weights, cmap="gray", vmin=0, vmax=1)
axis.set_xticks(range(len(shown.source)), shown.source, rotation=45, ha="left")
axis.set_yticks(range(len(shown.target)), shown.target)
axis.xaxis.tick_top()
plt.show()

# %% [markdown]
# ## Longer sentences (Figure 2)
#
# The paper's main claim: without attention (section 2.1), quality falls with the length of the sentence, because everything must fit into
# one vector. Here are BLEU scores of test sentences by their number of words.

# %%
test = nmt.load_corpus("sample:test", source="en", target="de")
pairs = list(test)[: 60 if SHORT else 600]
lengths = np.array([len(source.split()) for source, _ in pairs])
edges = np.quantile(lengths, [0, 0.25, 0.5, 0.75, 1]).astype(int)
curves: dict[str, list[float]] = {}
for name, translator in (("with attention", searching), ("without", encoding)):
    texts = [translation.text for translation in translator.translate([source for source, _ in pairs])]
    overall = sacrebleu.corpus_bleu(texts, [[target for _, target in pairs]]).score
    curves[name] = []
    for low, high in pairwise(edges.tolist()):
        rows = np.flatnonzero((lengths >= low) & ((lengths < high) | (high == edges[-1])))
        own = sacrebleu.corpus_bleu([texts[row] for row in rows], [[pairs[row][1] for row in rows]])
        curves[name].append(own.score)
    print(f"{name:15} BLEU {overall:4.1f}   by length:", *(f"{value:5.1f}" for value in curves[name]))

fig, axis = plt.subplots(figsize=(5.2, 3.2), layout="constrained")
places = [f"{low} to {high - (high != edges[-1])}" for low, high in pairwise(edges.tolist())]
for (name, values), color in zip(curves.items(), ("#1f5ab4", "#d62728"), strict=True):
    axis.plot(places, values, marker="o", color=color, label=name)
axis.set(xlabel="words of the source", ylabel="BLEU", ylim=(0, None))
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False)
plt.show()

# %% [markdown]
# After the same number of updates the model with attention is far ahead at every length, and as good on long sentences as on short ones.
# The other falls: its one vector has less and less room for each word. The sentences of the sample are short; the paper's have up to 60.
#
# ## Exercises
#
# 1. How many numbers does the decoder without attention know of a sentence, and how many with attention?
# 2. Which words of the picture read more than one source word? List those with a weight above 0.1.
#
# ## Answers

# %%
with torch.no_grad():
    squeezed = nmt.Bundle.load(FOLDER / "none").model.encode(ids, mask)
print(
    "1. without:",
    squeezed.attention.summary.shape[1],
    "with:",
    ids.shape[1],
    "x",
    memory.attention.annotations.shape[2],
)
LEAST = 0.1
for word, row in zip(shown.target, shown.weights, strict=True):
    print(f"2. {word:14} above {LEAST}:", *(shown.source[place] for place in np.flatnonzero(row > LEAST)))

# %% [markdown]
# 1. Without attention it is one vector, however long the sentence is. With attention there is one per token.
# 2. Look for compounds, which German writes as one word, and for verbs whose parts English writes as "does ... open". The model has learned
#    these links from translating alone.
