# %% [markdown]
# # 4. From the decoder to the Transformer
#
# On the pages before, the state of a decoder asks, and the words of the source answer. *Attention Is All You Need*
# (Vaswani et al. 2017, [arXiv](https://arxiv.org/abs/1706.03762)) lets every word ask. The equation stays what it was, but for the
# division by $\sqrt d$:
#
# $$\mathrm{Attention}(Q, K, V) = \mathrm{softmax}\left(\frac{Q K^\top}{\sqrt{d}}\right) V \qquad \text{(equation 1)}$$
#
# Rows of $Q$ are queries, rows of $K$ and $V$ the keys and values of the words that are read. In *self-attention* all three come from the
# same sentence.

# %%
import inspect
import os
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

import matplotlib.pyplot as plt
import numpy as np
import sacrebleu
import torch

import nmt
from nmt.decoding.self_attention import read_self_attention
from nmt.model import transformer
from nmt.model.build import build_model
from nmt.model.transformer import ScaledDotAttention, TransformerModel, no_future, positional_encoding

np.set_printoptions(precision=3, suppress=True)
SHORT = "NMT_TOUR_SHORT" in os.environ  # a few updates, to see that the page runs


def array(tensor: torch.Tensor) -> np.ndarray:
    values: np.ndarray = tensor.detach().double().numpy()
    return values


# %% [markdown]
# ## Every word asks
#
# Four words of two numbers each. Queries, keys and values are the words themselves, so a word reads most of what is like it.

# %%
WORDS = ["the", "dog", "and", "cat"]
X = np.array([[1.0, 0.0], [0.2, 2.0], [1.0, 0.3], [0.0, 1.8]])


def softmax(scores: np.ndarray) -> np.ndarray:
    powers: np.ndarray = np.exp(scores - scores.max(-1, keepdims=True))
    shares: np.ndarray = powers / powers.sum(-1, keepdims=True)
    return shares


weights = softmax(X @ X.T / np.sqrt(2))
print("weights, one row per word that asks:", weights, sep="\n")
print("contexts:", weights @ X, sep="\n")

# %% [markdown]
# A row is one attention of page 1, and the four rows are one product of matrices. A GRU needs four steps for as many words, each after the
# other. Self-attention has no such order, which is why a Transformer trains fast on a machine with many cores.
#
# ## Several heads
#
# One softmax makes one mean. To read a verb and its subject at once, a word asks several times, with its own share of the width each time
# (section 3.2.2). Each head has matrices of its own:
#
# $$\mathrm{MultiHead}(Q, K, V) = [\mathrm{head}_1; \ldots; \mathrm{head}_K]\, W^O \qquad
# \mathrm{head}_k = \mathrm{Attention}(Q W_k^Q, K W_k^K, V W_k^V)$$
#
# In `nmt.model.transformer`, the matrices of all heads are one, which is cut into shares afterwards:

# %%
print(inspect.getsource(ScaledDotAttention.forward))

# %% [markdown]
# By hand, with two heads, on four words of six numbers:

# %%
torch.manual_seed(2)
words = torch.randn(1, 4, 6).double()
module = ScaledDotAttention(6, heads=2).double()
everything = torch.ones(1, 1, 4, dtype=torch.bool)
by_module, weights_of_heads = module(words, *module.keys_and_values(words), everything)


def linear(layer: torch.nn.Linear, values: np.ndarray) -> np.ndarray:
    product: np.ndarray = values @ array(layer.weight).T + array(layer.bias)
    return product


Q, K, V = (linear(layer, array(words[0])) for layer in (module.query, module.key, module.value))
shares = [slice(0, 3), slice(3, 6)]
by_hand = [softmax(Q[:, share] @ K[:, share].T / np.sqrt(3)) for share in shares]
joined = np.concatenate([head @ V[:, share] for head, share in zip(by_hand, shares, strict=True)], axis=1)
assert np.allclose(linear(module.output, joined), array(by_module[0]))
assert np.allclose(by_hand, array(weights_of_heads[0]))
print("head 1:", by_hand[0], "head 2:", by_hand[1], sep="\n")

# %% [markdown]
# ## Words without order
#
# Shuffle the words, and each gets the same context as before, only in another row. Attention reads a set. A GRU does not: what it has read
# before a word changes the word.

# %%
shuffle = [2, 0, 3, 1]
shuffled = words[:, shuffle]
contexts, _ = module(shuffled, *module.keys_and_values(shuffled), everything)
print("only the rows move:", np.allclose(array(contexts), array(by_module[:, shuffle])))

# %% [markdown]
# "The dog bites the man" and "the man bites the dog" would be the same to such an encoder. The Transformer therefore adds a vector to each
# word that says where it stands (section 3.5):
#
# $$\mathrm{PE}(p, 2i) = \sin\left(p / 10000^{2i/E}\right) \qquad \mathrm{PE}(p, 2i+1) = \cos\left(p / 10000^{2i/E}\right)$$

# %%
placed = shuffled + positional_encoding(0, shuffled)
before = words + positional_encoding(0, words)
contexts, _ = module(placed, *module.keys_and_values(placed), everything)
original, _ = module(before, *module.keys_and_values(before), everything)
print("with positions, only the rows move:", np.allclose(array(contexts), array(original[:, shuffle])))

encoding = array(positional_encoding(0, torch.zeros(1, 40, 64)))
fig, axes = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained")
axes[0].imshow(encoding, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
axes[0].set(xlabel="dimension", ylabel="position p", title="PE(p)")
axes[1].imshow(encoding @ encoding.T, cmap="Blues")
axes[1].set(xlabel="position", ylabel="position", title="PE(p) · PE(q): near places are alike")
plt.show()

# %% [markdown]
# ## No look ahead
#
# The decoder's words attend to each other as well. In training it knows the whole target, and must not read the word that it is to predict.
# The mask gives word $t$ the words up to $t$ (section 3.2.3). Hatched cells must not be read.

# %%
keys, values = module.keys_and_values(words)
_, masked = module(words, keys, values, no_future(4, keys))
fig, axis = plt.subplots(figsize=(3.2, 3), layout="constrained")
axis.patch.set(hatch="////", edgecolor="#b0b0b0")  # seen where there is no color
axis.imshow(np.where(array(no_future(4, keys)[0]) > 0, array(masked[0, 0]), np.nan), cmap="Blues", vmin=0, vmax=1)
axis.set_xticks(range(4), WORDS)
axis.set_yticks(range(4), WORDS)
axis.set(xlabel="read", ylabel="asks")
plt.show()
print(inspect.getsource(no_future))

# %% [markdown]
# ## A trained one
#
# A small Transformer: two layers in the encoder and two in the decoder, four heads each, trained on the embedded sample.

# %%
FOLDER = Path(tempfile.mkdtemp())
SIZES = "embedding: 64, heads: 4, feed_forward: 128, encoder: {layers: 2}, decoder: {layers: 2}"
recipe = nmt.load_recipe(
    "quickstart",
    [
        "subwords.size=1000",
        f"model={{kind: transformer, tie: all, norm: pre, {SIZES}}}",
        *(f"training.updates={20 if SHORT else 800}", "training.schedule.warmup=100"),
        *("training.optimizer.rate=8e-3", "training.validation.metrics=perplexity"),
    ],
)
nmt.train(recipe, FOLDER / "transformer", device="cpu", quiet=True)
pairs = list(nmt.load_corpus("sample:test", source="en", target="de"))[: 40 if SHORT else 300]
sources, references = map(list, zip(*pairs, strict=True))
translator = nmt.load(FOLDER / "transformer", "cpu", split_sentences=False)  # sorted words have a full stop inside


def bleu(lines: list[str]) -> float:
    score: float = sacrebleu.corpus_bleu([each.text for each in translator.translate(lines)], [references]).score
    return score


ordered = bleu(sources)
print(f"BLEU {ordered:.1f}")

# %% [markdown]
# The mask is why training is fast: the decoder computes the log-probabilities of all target tokens at once, and they are those of one step
# after the other, as a search takes them.

# %%
bundle = nmt.Bundle.load(FOLDER / "transformer")
model = bundle.model.eval()
assert isinstance(model, TransformerModel)
source = torch.tensor([[*bundle.source.encode(sources[0]), 3]])  # 3 is the end mark
target = torch.tensor([[2, *bundle.target.encode(references[0])]])  # 2 begins a sentence
mask = torch.ones_like(source, dtype=torch.bool)
with torch.no_grad():
    memory = model.encode(source, mask)
    readouts = model.decode(target, model.start(memory), memory)[0]
    at_once = model.output.log_probs(readouts[0])[:]
    decoder_state, one_by_one = model.start(memory), list[torch.Tensor]()
    for token in target[0]:
        step: Any = model.step(token[None], decoder_state, memory, torch.tensor([0]))
        decoder_state = step.state
        one_by_one.append(step.log_probs[:][0])
assert np.allclose(array(at_once), array(torch.stack(one_by_one)), atol=1e-4)
print("tokens at once:", target.shape[1], "  the same as step by step")

# %% [markdown]
# ## What each head reads
#
# The weights of the encoder's self-attention, layer by layer and head by head, merged from tokens to words. A row is the word that asks.
# `nmt plot --self` draws such a picture for a model of your own.

# %%
line = "In the evening the young teacher opens the kitchen window for the neighbour."
fig, axes = plt.subplots(2, 4, figsize=(12, 7), sharex=True, sharey=True, layout="constrained")
for layer, row in enumerate(axes, start=1):
    for head, axis in enumerate(row, start=1):
        shown = read_self_attention(bundle, line, layer=layer, head=head)
        axis.imshow(shown.weights, cmap="Blues", vmin=0, vmax=0.7)
        axis.set_title(f"layer {layer}, head {head}")
        axis.set_xticks(range(len(shown.source)), shown.source, rotation=90)
        axis.set_yticks(range(len(shown.target)), shown.target)
plt.show()

# %% [markdown]
# One sentence can mislead. Here is what each head does on average in 100 sentences: the weight of the word at each distance, before (left)
# and after (right), and the number of words that share a row. That number is $e^H$, where $H$ is the entropy of the row: 1 if one word
# has all the weight, and the length of the sentence if all have the same.

# %%
FAR = 6
distances = np.arange(-FAR, FAR + 1)
profiles = np.zeros((8, 2 * FAR + 1))
names = [f"layer {layer}, head {head}" for layer in (1, 2) for head in (1, 2, 3, 4)]
for number in range(8):
    rows: dict[int, list[float]] = {distance: [] for distance in distances.tolist()}
    entropies = []
    for text in sources[:100]:
        read = read_self_attention(bundle, text, layer=1 + number // 4, head=1 + number % 4).weights
        for distance, weights_there in rows.items():
            weights_there.extend(np.diagonal(read, distance))
        entropies.extend(-(read * np.log(read + 1e-9)).sum(1))
    profiles[number] = [np.mean(weights_there) for weights_there in rows.values()]
    sharing = np.exp(np.mean(entropies))
    print(f"{names[number]}   words that share a row: {sharing:4.1f}   itself {profiles[number, FAR]:.2f}")
fig, axis = plt.subplots(figsize=(7, 3.4), layout="constrained")
picture = axis.imshow(profiles, cmap="Blues", vmin=0, aspect="auto")
axis.set_yticks(range(8), names)
axis.set_xticks(range(2 * FAR + 1), distances)
axis.set(xlabel="distance of the word that is read")
fig.colorbar(picture, label="mean weight")
plt.show()

# %% [markdown]
# Every head reads several words, and the word itself most of all. In large models some heads specialize: Voita et al. 2019
# ([arXiv](https://arxiv.org/abs/1905.09418)) describe heads for neighbors, for syntax and for rare words.
#
# ## Take the positions away
#
# The same model translates the same sentences with the positional encoding set to zero, in encoder and decoder, and then with positions but
# the words of each source sentence sorted by the alphabet.


# %%
def no_positions(_first: int, embedded: torch.Tensor) -> torch.Tensor:
    return torch.zeros(embedded.shape[1:])


by_alphabet = bleu([" ".join(sorted(text.split())) for text in sources])
with patch.object(transformer, "positional_encoding", no_positions):
    without = bleu(sources)
print(f"as trained {ordered:.1f}   words sorted {by_alphabet:.1f}   no positions {without:.1f}")

# %% [markdown]
# This model has learned to rely on positions. One that is trained without them may do better, but its encoder still sees no difference
# between the two sentences about dog and man.
#
# ## What it costs
#
# Self-attention compares each word with each: its work grows with the square of the sentence, that of a GRU with the length
# (Table 1 of the paper). In exchange, any two words are one step apart, not as many as lie between them. The parameters of the model above,
# beside those of the recurrent model of page 2 with as many subwords:

# %%
RECURRENT = [
    *("subwords.size=1000", "model.embedding=64", "model.encoder.hidden=64", "model.decoder.hidden=128"),
    *("model.attention.score.size=64", "model.decoder.readout.size=64"),
]
for name, config in (("Transformer", recipe.model), ("recurrent", nmt.load_recipe("quickstart", RECURRENT).model)):
    built = build_model(config, source_size=1000, target_size=1000)
    total = sum(each.numel() for each in built.parameters())
    encoder, decoder = (sum(each.numel() for each in part.parameters()) for part in (built.encoder, built.decoder))
    print(
        f"{name:12} {total:8,}   encoder {encoder:7,}   decoder {decoder:7,}   embeddings, output {total - encoder - decoder:7,}"
    )

# %% [markdown]
# ## Exercises
#
# 1. The scores are divided by $\sqrt d$. What happens to the largest weight without it, for random queries and keys of 64 numbers?
# 2. Which is the first row of the mask that reads three words?
# 3. How far apart are "the" and "cat" for self-attention, and how far for a GRU?
#
# ## Answers

# %%
torch.manual_seed(1)
query, key = torch.randn(1000, 64), torch.randn(1000, 10, 64)
scores = array((key @ query[:, :, None])[:, :, 0])
print(
    f"1. largest of ten weights, mean: {softmax(scores).max(1).mean():.2f}, divided: {softmax(scores / 8).max(1).mean():.2f}"
)
print("2. row", int(np.argmax(array(no_future(4, keys)[0]).sum(1) == 3)), "counted from 0")
print("3. self-attention: 1 step; GRU:", len(WORDS) - 1, "steps")

# %% [markdown]
# 1. Without the division, one word takes nearly everything, and the softmax has almost no gradient left to learn from.
# 2. The third row, which is row 2: a word reads itself and all before it.
# 3. One step against three.
