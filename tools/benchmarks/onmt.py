"""OpenNMT-py 3.5.1."""

from __future__ import annotations

import re
from pathlib import Path

from .measuring import MeasurementError, run
from .peers import Decoded, Environment, Trained
from .shared_model import EMBEDDING, HIDDEN
from .text import Text

_WINDOW = re.compile(r"bsz:\s*(\d+)/\s*(\d+)/\s*(\d+);\s*(\d+)/\s*(\d+) tok/s")
_SECONDS = re.compile(r"Total translation time \(s\): ([\d.]+)")


def windows(log: str) -> tuple[list[float], float]:
    """Target tokens per second of each logged window, and the mean number of target tokens per batch."""
    records = _WINDOW.findall(log)
    if not records:
        raise MeasurementError("OpenNMT-py logged no speed; its log ends: " + " / ".join(log.strip().splitlines()[-2:]))
    return [float(rate) for *_, rate in records], sum(float(batch) for _, batch, *_ in records) / len(records)


def seconds(log: str) -> float:
    """Seconds of translating, without loading the model."""
    match = _SECONDS.search(log)
    if not match:
        raise MeasurementError(
            "OpenNMT-py reported no time; its output ends: " + " / ".join(log.strip().splitlines()[-2:])
        )
    return float(match[1])


class OpenNMT:
    name = "OpenNMT-py 3.5.1"
    attentions = {"additive": "mlp", "general": "general"}  # noqa: RUF012
    batches = "the longest side of any sentence, BOS and EOS of the target included, times the number of sentences."

    def __init__(self, folder: Path, threads: int, device: str = "cpu") -> None:
        self.folder, self.threads, self.uses_gpu = folder, threads, device == "cuda"
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
        out = model.parent
        out.mkdir(parents=True, exist_ok=True)
        config = self.config(out, text, attention, updates, batch_tokens)
        command = [self.environment.program("onmt_train"), "-config", config]
        process = run(command, threads=self.threads, what=f"{self.name} {attention}")
        log = process.output + process.errors
        (out / "log").write_text(log, encoding="utf-8")
        return Trained(model, *windows(log), process.peak)

    def decode(self, model: Path, family: str, text: Text, source: Path, *, beam: int) -> Decoded:
        output = model.with_name(f"beam{beam}.{text.target}")
        subwords = ["-src_subword_model", text.subwords, "-tgt_subword_model", text.subwords]
        process = run(
            [
                *(self.environment.program("onmt_translate"), "-model", model, "-src", source),
                *("-output", output, "-beam_size", beam, "-batch_size", 64, "-batch_type", "sents", "-max_length", 100),
                *("-transforms", "sentencepiece", *subwords, "-length_penalty", "avg", "-report_time"),
                *(("-gpu", 0) if self.uses_gpu else ()),
            ],
            threads=self.threads,
            what=f"{self.name}, beam {beam}",
        )
        return Decoded(seconds(process.output + process.errors), process.seconds, process.peak, output)

    def config(self, out: Path, text: Text, attention: str, updates: int, batch_tokens: int) -> Path:
        """Write the settings of a training run."""
        path, vocabulary = out / "config.yaml", out / "vocabulary"
        count = len(text.tokens)
        vocabulary.write_text(
            "".join(f"{token}\t{100_000 + count - rank}\n" for rank, token in enumerate(text.tokens)), encoding="utf-8"
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
{"gpu_ranks: [0]" if self.uses_gpu else ""}
""",
            encoding="utf-8",
        )
        return path
