"""The recipe: all settings of a training run.

A recipe is a YAML file. A union such as `score` is written as its kind alone (`score: additive`) or with settings
(`score: {kind: additive, size: 512}`). An unknown key, a wrong type or an impossible combination raises a `UsageError` that
gives the dotted path of the key.
"""

from nmt.recipe.attention import (
    AdditiveScoreConfig,
    AttentionConfig,
    ConcatScoreConfig,
    DotScoreConfig,
    GeneralScoreConfig,
    GlobalWindowConfig,
    LocalMonotonicWindowConfig,
    LocalPredictiveWindowConfig,
    LocationScoreConfig,
    NoScoreConfig,
    ScoreConfig,
    WindowConfig,
)
from nmt.recipe.choosing import (
    LENGTH_PENALTY,
    MBR_BETA,
    MBR_SAMPLES,
    Choice,
    SideProfile,
    TextProfile,
    choose_settings,
)
from nmt.recipe.data import (
    CorpusConfig,
    DataConfig,
    Direction,
    FiltersConfig,
    HeldOutText,
    Normalization,
    TextConfig,
    text_name,
)
from nmt.recipe.loading import (
    EXAMPLE_DATA,
    change_decoding,
    changed_keys,
    choose_again,
    dump_recipe,
    is_chosen,
    leaves,
    leaves_data_open,
    load_recipe,
    parse_filters,
    parse_overrides,
    parse_recipe,
    recorded_choices,
    value_at,
)
from nmt.recipe.recurrent import (
    AttendThenUpdateConfig,
    AttentionalReadoutConfig,
    Cell,
    DecoderConfig,
    DefaultInitializationConfig,
    DropoutConfig,
    EncoderConfig,
    GaussianInitializationConfig,
    InitializationConfig,
    MaxoutReadoutConfig,
    OrderConfig,
    ReadoutConfig,
    RecurrentModelConfig,
    StateReadoutConfig,
    TanhReadoutConfig,
    UniformInitializationConfig,
    UpdateThenAttendConfig,
)
from nmt.recipe.schema import ModelConfig, Recipe, recipe_schema
from nmt.recipe.scoring import DecodingConfig, ReportedScore, Tokenizer
from nmt.recipe.shipped import find_recipe, recipe_title, shipped_recipes
from nmt.recipe.strict_yaml import parse_yaml
from nmt.recipe.training import (
    AdadeltaConfig,
    AdamConfig,
    AllReduce,
    ConstantScheduleConfig,
    CosineScheduleConfig,
    ExponentialDecayConfig,
    GuidedAlignmentConfig,
    HalvingScheduleConfig,
    InverseSigmoidDecayConfig,
    InverseSqrtScheduleConfig,
    LinearDecayConfig,
    OptimizerConfig,
    PlateauScheduleConfig,
    PretrainedConfig,
    ScheduleConfig,
    ScheduledSamplingConfig,
    SgdConfig,
    ValidationConfig,
)
from nmt.recipe.transformer import TransformerModelConfig
