"""OpenNMT-py 3.5.1."""

from __future__ import annotations

import re
from pathlib import Path

from .measuring import Failed, run
from .peers import Decoded, Environment, Trained
from .shared_model import EMBEDDING, HIDDEN
from .text import Text

_WINDOW = re.compile(r"bsz:\s*(\d+)/\s*(\d+)/\s*(\d+);\s*(\d+)/\s*(\d+) tok/s")
_SECONDS = re.compile(r"Total translation time \(s\): ([\d.]+)")


def windows(log: str) -> tuple[list[float], float]:
    """Target pieces a second of each logged window, and the mean number of target pieces a batch."""
    found = _WINDOW.findall(log)
    if not found:
        raise Failed("OpenNMT-py logged no speed; its log ends: " + " / ".join(log.strip().splitlines()[-2:]))
    return [float(rate) for *_, rate in found], sum(float(batch) for _, batch, *_ in found) / len(found)


def seconds(log: str) -> float:
    """Seconds that translating took, without loading the model."""
    found = _SECONDS.search(log)
    if not found:
        raise Failed("OpenNMT-py reported no time; it said: " + " / ".join(log.strip().splitlines()[-2:]))
    return float(found[1])


class OpenNMT:
    name = "OpenNMT-py 3.5.1"
    attentions = {"additive": "mlp", "general": "general"}  # noqa: RUF012
    batches = "the longest side of any of its sentences, the target with both marks, times their number."

    def __init__(self, folder: Path, threads: int) -> None:
        self.folder, self.threads = folder, threads
        self.environment = Environment(
            folder / "onmt",
            installs=(
                ("torch=={torch}",),
                ("--no-deps", "OpenNMT-py==3.5.1"),
                tuple(
                    "configargparse ctranslate2>=4,<5 tensorboard flask waitress pyonmttok>=1.37,<2 pyyaml sacrebleu "
                    "rapidfuzz pyahocorasick fasttext-wheel spacy six sentencepiece setuptools".split()
                ),
            ),
            edits=(
                (
                    "onmt/models/model_saver.py",
                    'map_location=torch.device("cpu"))',
                    'map_location=torch.device("cpu"), weights_only=False)',
                ),
            ),
        )

    def set_up(self) -> None:
        self.environment.set_up()

    def model(self, family: str, text: Text, *, updates: int, batch_tokens: int) -> Path:
        run = f"onmt-{self.attentions[family]}-{batch_tokens}x{updates}-{text.key}"
        return self.folder / "runs" / run / f"model_step_{updates}.pt"

    def train(self, family: str, text: Text, *, updates: int, batch_tokens: int) -> Trained:
        attention = self.attentions[family]
        model = self.model(family, text, updates=updates, batch_tokens=batch_tokens)
        out, log = model.parent, model.with_name("log")
        out.mkdir(parents=True, exist_ok=True)
        config = self.config(out, text, attention, updates, batch_tokens)
        what = f"{self.name} {attention}"
        ended = run([self.environment.program("onmt_train"), "-config", config], threads=self.threads, what=what)
        said = ended.output + ended.errors
        log.write_text(said, encoding="utf-8")
        rates, pieces = windows(said)
        return Trained(model, rates, pieces, ended.peak)

    def decode(self, model: Path, family: str, text: Text, source: Path, *, beam: int) -> Decoded:
        found = model.with_name(f"beam{beam}.{text.target}")
        subwords = ["-src_subword_model", text.subwords, "-tgt_subword_model", text.subwords]
        ended = run(
            [
                *(self.environment.program("onmt_translate"), "-model", model, "-src", source),
                *("-output", found, "-beam_size", beam, "-batch_size", 64, "-batch_type", "sents", "-max_length", 100),
                *("-transforms", "sentencepiece", *subwords, "-length_penalty", "avg", "-report_time"),
            ],
            threads=self.threads,
            what=f"{self.name}, beam {beam}",
        )
        return Decoded(seconds(ended.output + ended.errors), ended.seconds, ended.peak, found)

    def config(self, out: Path, text: Text, attention: str, updates: int, batch_tokens: int) -> Path:
        """Write the settings of a training."""
        path, vocabulary = out / "config.yaml", out / "vocabulary"
        count = len(text.pieces)
        vocabulary.write_text(
            "".join(f"{piece}\t{100_000 + count - rank}\n" for rank, piece in enumerate(text.pieces)), encoding="utf-8"
        )
        path.write_text(
            f"""\
save_data: {out}/data
data:
    corpus: {{path_src: {text.file("train", "source")}, path_tgt: {text.file("train", "target")},
             transforms: [sentencepiece, filtertoolong]}}
    valid: {{path_src: {text.file("few", "source")}, path_tgt: {text.file("few", "target")}, transforms: [sentencepiece]}}
src_subword_model: {text.subwords}
tgt_subword_model: {text.subwords}
src_seq_length: 100
tgt_seq_length: 100
src_vocab: {vocabulary}
tgt_vocab: {vocabulary}
share_vocab: true
overwrite: true
encoder_type: brnn
decoder_type: rnn
rnn_type: GRU
enc_layers: 1
dec_layers: 1
hidden_size: {HIDDEN}
word_vec_size: {EMBEDDING}
global_attention: {attention}
input_feed: 1
dropout: [0.3]
model_dtype: fp32
optim: adam
learning_rate: 0.001
max_grad_norm: 1.0
batch_type: tokens
batch_size: {batch_tokens}
valid_batch_size: 32
normalization: tokens
num_workers: 1
bucket_size: 30000
train_steps: {updates}
valid_steps: 1000000
save_checkpoint_steps: {updates}
save_model: {out}/model
report_every: 5
seed: 42
world_size: 1
""",
            encoding="utf-8",
        )
        return path
