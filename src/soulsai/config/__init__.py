"""Configs: the schema, presets, reading and writing. Light: `souls --help` and error messages wait for no simulator."""

from soulsai.config.changes import with_settings
from soulsai.config.checks import check_names, checked
from soulsai.config.differences import differences
from soulsai.config.presets import config_from_toml, load_preset, preset_description, preset_names, read_config
from soulsai.config.reference import reference, write_reference
from soulsai.config.schema import (
    ActionsConfig,
    Config,
    EncoderConfig,
    FightConfig,
    GymConfig,
    NetworkConfig,
    PPOConfig,
    QConfig,
    ReplayConfig,
    RewardConfig,
    RunConfig,
    StartsConfig,
)
from soulsai.config.toml import config_to_toml

__all__ = [
    "ActionsConfig",
    "Config",
    "EncoderConfig",
    "FightConfig",
    "GymConfig",
    "NetworkConfig",
    "PPOConfig",
    "QConfig",
    "ReplayConfig",
    "RewardConfig",
    "RunConfig",
    "StartsConfig",
    "check_names",
    "checked",
    "config_from_toml",
    "config_to_toml",
    "differences",
    "load_preset",
    "preset_description",
    "preset_names",
    "read_config",
    "reference",
    "with_settings",
    "write_reference",
]
