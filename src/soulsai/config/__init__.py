"""Configs: the schema, presets, reading and writing. Light: no simulator, Numba, torch or Gymnasium."""

from soulsai.config.checks import check_config, check_names
from soulsai.config.merging import with_settings
from soulsai.config.presets import config_from_toml, load_preset, preset_description, preset_names
from soulsai.config.reference import reference
from soulsai.config.schema import Config
from soulsai.config.toml import config_to_toml, differences

__all__ = [
    "Config",
    "check_config",
    "check_names",
    "config_from_toml",
    "config_to_toml",
    "differences",
    "load_preset",
    "preset_description",
    "preset_names",
    "reference",
    "with_settings",
]
