"""The distribution's name and version, and its extras: which one brings a package that is missing."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable

from soulsgym.errors import MissingPackage

DISTRIBUTION = "souls-arena"
"""What pip installs; the packages to import from it are soulsgym and soulsai."""
VERSION = "2.0.0"

EXTRAS = {
    "render": ("pygame",),
    "cli": ("rich", "typer"),
    "worker": ("hiredis", "lz4", "psutil", "redis", "safetensors", "websockets", "xxhash"),
    "train": ("imageio_ffmpeg", "plotly", "scipy", "tensorboard", "threadpoolctl", "torch"),
    "game": ("mss", "PIL", "Xlib"),
    "dashboard": ("prometheus_client", "starlette", "uvicorn"),
    "fleet": ("cryptography", "trustme"),
    "sweep": ("optuna",),
    "wandb": ("wandb",),
    "hub": ("huggingface_hub",),
    "minari": ("h5py", "minari"),
    "onnx": ("onnxruntime",),
    "export": ("onnx", "onnxscript"),
    "lander": ("Box2D",),
    "sb3": ("sb3_contrib", "stable_baselines3"),
    "bench": ("envpool",),
}
"""The modules that each extra brings, beside those of other extras that it includes."""
OTHER_NAMES = {"Box2D": "box2d", "PIL": "pillow", "Xlib": "python-xlib", "pygame": "pygame-ce"}
"""Packages of modules that are called otherwise."""


def install_command(*extras: str) -> str:
    """The command that installs some extras."""
    return f"pip install '{DISTRIBUTION}[{','.join(extras)}]'"


def require(*modules: str) -> None:
    """Raise MissingPackage, which says what to install, unless all these modules of extras are there."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        raise _missing(missing)


def missing_package(error: BaseException) -> MissingPackage | None:
    """What to say instead of an import error, or one with an import error as its cause; None if no extra helps."""
    for cause in (error, error.__cause__):
        module = (cause.name or "").partition(".")[0] if isinstance(cause, ModuleNotFoundError) else ""
        if any(module in modules for modules in EXTRAS.values()):
            return _missing([module])
    return None


def _missing(modules: Iterable[str]) -> MissingPackage:
    names = [OTHER_NAMES.get(module, module.replace("_", "-")) for module in modules]
    extras = [extra for extra, brought in EXTRAS.items() if not set(brought).isdisjoint(modules)]
    verb = "is" if len(names) == 1 else "are"
    return MissingPackage(f"{' and '.join(names)} {verb} not installed; run: {install_command(*extras)}")
