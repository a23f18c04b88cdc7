"""All settings, and the paths of a workspace that follow from its location.

In order of precedence: the environment; `settings.toml` in the workspace; pi's memory.json (models only); the default.
Only MEMORY_WORKSPACE sets the workspace. Each invalid value and unknown name is an error of one sentence; names of the
last release are read with a warning.
"""

from memory_pipeline.settings.fields import BUNDLED_MODEL, IDENTITY_FILES, Settings
from memory_pipeline.settings.groups import ModelSettings, ObserverSettings
from memory_pipeline.settings.loading import (
    SettingError,
    check_file,
    keep_first_day,
    keep_timezone,
    load_settings,
    named_workspace,
    workspace_salt,
)
from memory_pipeline.settings.sources import settings_of

__all__ = [
    "BUNDLED_MODEL",
    "IDENTITY_FILES",
    "ModelSettings",
    "ObserverSettings",
    "SettingError",
    "Settings",
    "check_file",
    "keep_first_day",
    "keep_timezone",
    "load_settings",
    "named_workspace",
    "variable",
    "workspace_salt",
]


def variable(key: str) -> str:
    """The environment variable of a setting, by its path."""
    return settings_of(Settings)[key].variable
