"""What algorithms have in common, and that nobody outside of their folders asks which one it is."""

import ast
import re
from pathlib import Path

import pytest
import torch

import soulsai
from soulsai.acting.policy import NetworkPolicy
from soulsai.algorithms.algorithm import Algorithm, algorithm_of
from soulsai.config import with_settings
from soulsai.config.algorithms import algorithm_settings
from soulsai.config.schema import Config
from soulsai.experience import Sizes

SOURCE = Path(soulsai.__file__).parent
NAMES = tuple(algorithm_settings())
SIZES = Sizes(observation_size=3, num_actions=4, terms=2, number=2)


@pytest.mark.parametrize("name", NAMES)
def test_an_algorithm_is_a_folder_with_everything_in_it(name):
    config = with_settings(Config(), [f"algorithm={name}", "network.hidden=[8]", "replay.capacity=1000"])
    algorithm = algorithm_of(config)
    assert isinstance(algorithm, Algorithm)
    assert algorithm.name == name
    schema, networks = algorithm.schema(config, SIZES), algorithm.networks(config, SIZES)
    assert {"observations", "actions", "rewards"} <= schema.columns.keys()
    learner = algorithm.learner(config, SIZES, torch.device("cpu"))
    assert learner.schema == schema
    assert networks.keys() == learner.networks.keys() <= learner.modules.keys()
    assert learner.optimizers.keys() == learner.flats.keys()
    replays = "replay" in algorithm_settings()[name].uses
    assert (learner.store is not None) == replays == (algorithm.rows_of_update(config) == 0)
    assert isinstance(algorithm.policy(networks), NetworkPolicy)
    assert 0.0 < algorithm.gamma(config) <= 1.0
    assert learner.is_finite()


# ---------------------------------------------------------------- nobody asks


def mentions(tree, names):
    """Comparisons with the name of an algorithm, isinstance of its classes, and imports from its folder."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Eq, ast.NotEq, ast.In, ast.NotIn)):
            operands = [node.left, *node.comparators]
            asked = [one for one in operands if isinstance(one, (ast.Attribute, ast.Name))]
            about = any(getattr(one, "attr", getattr(one, "id", "")) == "algorithm" for one in asked)
            texts = {leaf.value for one in operands for leaf in ast.walk(one) if isinstance(leaf, ast.Constant)}
            if about or texts & (names - {"q"}):
                yield node.lineno, "compares with an algorithm's name"
        if isinstance(node, ast.MatchValue) and getattr(node.value, "value", None) in names:
            yield node.lineno, "matches an algorithm's name"
        if isinstance(node, ast.ImportFrom) and node.module:
            parts = node.module.split(".")
            if parts[:2] == ["soulsai", "algorithms"] and len(parts) > 2 and parts[2] in names:
                yield node.lineno, f"imports {node.module}"


def test_nobody_outside_of_an_algorithms_folder_asks_which_one_it_is():
    names, found = set(NAMES), []
    for file in sorted(SOURCE.rglob("*.py")):
        place = file.relative_to(SOURCE)
        if place.parts[0] == "algorithms" and place.parts[1] in names:
            continue
        tree = ast.parse(file.read_text("utf-8"))
        found += [f"{place}:{line}: {what}" for line, what in mentions(tree, names)]
    assert found == []


@pytest.mark.parametrize(
    "code",
    [
        'if config.algorithm == "ppo": pass',
        'x = config.algorithm in ("q", "sac")',
        'x = "ppo" != name',
        "from soulsai.algorithms.q.config import QConfig",
        "from soulsai.algorithms.ppo import learner",
        'match name:\n    case "q": pass',
    ],
)
def test_such_a_question_is_found(code):
    assert list(mentions(ast.parse(code), {"ppo", "q"}))


def test_no_algorithm_imports_another():
    for name in NAMES:
        others = set(NAMES) - {name}
        for file in (SOURCE / "algorithms" / name).rglob("*.py"):
            found = [what for _, what in mentions(ast.parse(file.read_text("utf-8")), others) if "imports" in what]
            assert found == [], file


# ---------------------------------------------------------------- what a new one takes


@pytest.mark.parametrize("name", ["sac", "impala"])
def test_an_algorithm_is_a_folder_a_preset_and_a_page(name):
    """Nothing else in the packages knows of it."""
    own = SOURCE / "algorithms" / name
    told = [
        file.relative_to(SOURCE).as_posix()
        for file in SOURCE.rglob("*")
        if file.suffix in (".py", ".toml", ".js", ".html") and not file.is_relative_to(own)
        and re.search(rf"\b{name}\b", file.read_text("utf-8"))
    ]  # fmt: skip
    assert told == [f"presets/{name}.toml"]
    assert (SOURCE.parents[1] / "docs" / "algorithms" / f"{name}.md").is_file()
    assert len(list(own.glob("*.py"))) <= 5
