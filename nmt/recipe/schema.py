"""The schema of recipes: every setting of a training run, as frozen and strictly validated pydantic models.

Defaults of some settings follow from others. Values that contradict each other are errors.
"""

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from nmt.recipe.choosing import AUTO
from nmt.recipe.data import DataConfig, SubwordsConfig
from nmt.recipe.recurrent import RecurrentModelConfig
from nmt.recipe.scoring import DecodingConfig, EvaluationConfig, ReportedScore
from nmt.recipe.section import BY_KIND, Section, default_kind
from nmt.recipe.training import TrainingConfig
from nmt.recipe.transformer import TransformerModelConfig

ModelConfig = Annotated[RecurrentModelConfig | TransformerModelConfig, BY_KIND, default_kind("recurrent")]


class Chosen(Section):
    """Settings that `nmt` chose because the recipe left them open, and why."""

    settings: tuple[str, ...]
    """Their dotted keys."""
    reason: str


class Recipe(Section):
    """All settings of a training run."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    """Name of the recipe, and of the default output folder under `runs/`."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    data: DataConfig
    subwords: SubwordsConfig = SubwordsConfig()
    model: ModelConfig = RecurrentModelConfig()
    training: TrainingConfig = TrainingConfig()
    decoding: DecodingConfig = DecodingConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    reported: tuple[ReportedScore, ...] = ()
    """Scores of others on data.test, for `nmt reproduce`. A recipe does not inherit those of its base."""
    chosen: tuple[Chosen, ...] = ()
    """Which settings followed from the text, and why. A recipe file says `chosen: auto` to have all that it leaves open chosen."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.model.tie == "all" and not self.subwords.joint:
            raise ValueError("model.tie: all shares the embeddings of both languages, which needs subwords.joint: true")
        pretrained = self.training.pretrained
        if pretrained is not None and pretrained.subwords == "same" and self.subwords.source_model is not None:
            raise ValueError(
                "training.pretrained.subwords: same uses the subwords of the pretrained model, but subwords.source_model names "
                "a file: set training.pretrained.subwords: new or leave the file out"
            )
        guided = self.training.guided_alignment
        if guided is not None and not self.model.has_attention:
            raise ValueError(
                "training.guided_alignment has no attention to guide, because model.attention.score is none: "
                "leave it out or choose a score"
            )
        train = self.data.train if isinstance(self.data.train, str) else "a mixture"
        if guided is not None and guided.links == "gold" and not train.startswith("sample:"):
            raise ValueError(
                f"training.guided_alignment.links: gold needs a corpus that has links, sample:train, but data.train is "
                f"{train}: name a file of links"
            )
        faults = {
            "turns the training text round, which must be one corpus: data.train is a list": train == "a mixture",
            "translates back to data.source, which is data.target": self.data.source == self.data.target,
            "makes new pairs, for which a file of links has none: set training.guided_alignment.links to hmm": (
                guided is not None and guided.links != "hmm"
            ),
            "compares translations: let training.validation.metrics begin with bleu or chrf": (
                self.training.validation.metrics[0] == "perplexity"
            ),
        }
        if self.data.monolingual is not None and any(faults.values()):
            raise ValueError(f"data.monolingual {next(fault for fault, is_there in faults.items() if is_there)}")
        return self


def recipe_schema() -> dict[str, Any]:
    """The JSON Schema of a recipe file, for editors that complete and check YAML."""
    schema = Recipe.model_json_schema()
    schema["properties"]["base"] = {"type": "string", "description": "A recipe from which this one inherits."}
    chosen = schema["properties"]["chosen"]
    schema["properties"]["chosen"] = {"anyOf": [{"const": AUTO}, chosen], "description": chosen.pop("description")}
    data = schema["$defs"]["DataConfig"]  # of which `train` may tell the rest
    data["required"] = [key for key in data["required"] if key not in ("source", "target", "valid")]
    schema["anyOf"] = [{"required": schema.pop("required")}, {"required": ["base"]}]
    return schema
