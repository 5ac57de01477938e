"""The sentence for a missing package names it and the command that installs it."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

import soulsgym
from soulsgym.errors import MissingPackage, SoulsError
from soulsgym.packages import DISTRIBUTION, EXTRAS, OTHER_NAMES, VERSION, install_command, missing_package, require

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NOT_NEEDED_TO_RUN = {"dev"}


def name_of(requirement):
    """`gymnasium[box2d]>=1.3` is there for box2d."""
    name, extra = re.match(r"([\w-]+)(?:\[([\w-]+)\])?", requirement).groups()
    return extra or name


def test_name_and_version_are_those_of_the_distribution():
    assert PROJECT["name"] == DISTRIBUTION
    assert soulsgym.__version__ == VERSION
    assert re.fullmatch(r"\d+\.\d+\.\d+", VERSION)


def test_every_package_of_an_extra_is_known():
    assert PROJECT["optional-dependencies"].keys() - NOT_NEEDED_TO_RUN == EXTRAS.keys()
    for extra, modules in EXTRAS.items():
        needed = [text for text in PROJECT["optional-dependencies"][extra] if not text.startswith(DISTRIBUTION)]
        names = {OTHER_NAMES.get(module, module.replace("_", "-")) for module in modules}
        assert {name_of(text) for text in needed} == names, extra


def test_extras_of_extras_are_of_this_distribution():
    for needed in PROJECT["optional-dependencies"].values():
        for text in needed:
            if found := re.match(rf"{DISTRIBUTION}\[([\w,]+)\]$", text):
                assert set(found[1].split(",")) <= PROJECT["optional-dependencies"].keys()
            assert not text.startswith("soulsgym")


@pytest.mark.parametrize(
    ("modules", "sentence"),
    [
        (["torch"], "torch is not installed; run: pip install 'souls-arena[train]'"),
        (["pygame"], "pygame-ce is not installed; run: pip install 'souls-arena[render]'"),
        (["onnx", "onnxscript"], "onnx and onnxscript are not installed; run: pip install 'souls-arena[export]'"),
        (["torch", "redis"], "torch and redis are not installed; run: pip install 'souls-arena[worker,train]'"),
        (["stable_baselines3"], "stable-baselines3 is not installed; run: pip install 'souls-arena[sb3]'"),
    ],
)
def test_missing_packages_are_one_sentence(modules, sentence, monkeypatch):
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingPackage) as caught:
        require(*modules)
    assert str(caught.value) == sentence
    assert isinstance(caught.value, SoulsError)
    assert isinstance(caught.value, ImportError)


def test_only_the_missing_ones_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "lz4", None)
    with pytest.raises(MissingPackage, match=r"^lz4 is not installed"):
        require("gymnasium", "lz4")
    require("gymnasium")
    require()


def test_import_errors_that_an_extra_helps_against():
    told = missing_package(ModuleNotFoundError("No module named 'torch.nn'", name="torch.nn"))
    assert str(told) == f"torch is not installed; run: {install_command('train')}"
    outer = RuntimeError("wrapped")
    outer.__cause__ = ModuleNotFoundError("no", name="Box2D")
    assert str(missing_package(outer)) == f"box2d is not installed; run: {install_command('lander')}"


@pytest.mark.parametrize(
    "error",
    [
        ModuleNotFoundError("no", name="soulsai.nothing"),
        ModuleNotFoundError("no", name="somebodys_module"),
        ModuleNotFoundError("no name"),
        ImportError("cannot import name 'x' from 'torch'", name="torch"),
        ValueError("torch"),
    ],
)
def test_other_errors_are_left_alone(error):
    assert missing_package(error) is None


def test_nothing_advises_to_install_another_project():
    for file in (ROOT / "src").rglob("*.py"):
        assert not re.search(r"pip install ['\"]?(soulsgym|soulsai)\b", file.read_text(encoding="utf-8")), file
