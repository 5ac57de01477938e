"""Exported policies choose what the original chooses, and a bad file is one sentence."""

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import soulsai
from soulsai.acting import exported
from soulsai.acting.exported import export_policy, load_exported
from soulsai.algorithms.algorithm import algorithm_of
from soulsai.config import load_preset, with_settings
from soulsai.errors import RunError
from soulsai.learning.candidates import load_candidate
from soulsai.learning.loading import names_of, sizes_of
from soulsgym.errors import MissingPackage, MisuseError, PolicyError

LIMIT_S = 180.0
KINDS = {
    "ppo": ("smoke", ["network.normalize=true", "network.separate=true", "network.layer_norm=true"]),
    "c51": ("smoke-q", ["q.distribution=c51", "q.dueling=true", "q.noisy=true", "network.normalize=true"]),
    "twins": ("smoke-q", ["q.twin=true", "q.double=false", "q.dueling=true", "q.distribution=quantile", "q.atoms=5"]),
}


def config_for(kind):
    preset, settings = KINDS[kind]
    return with_settings(load_preset(preset), [*settings, "network.hidden=[16,16]"])


def export(networks, config, path):
    observation_names, action_names = names_of(config)
    export_policy(networks, config, path, observation_names=observation_names, action_names=action_names)


@pytest.fixture(scope="module")
def small():
    return with_settings(load_preset("cartpole-ppo"), ["network.hidden=[4]"])


@pytest.fixture(scope="module")
def originals(small, random_networks, tmp_path_factory):
    """A small policy, exported in both ways."""
    folder = tmp_path_factory.mktemp("exported")
    for suffix in (".onnx", ".pt"):
        export(random_networks(small), small, folder / f"small{suffix}")
    return folder


@pytest.fixture
def written(originals, tmp_path):
    """A function that gives a copy of the small policy."""
    return lambda suffix: Path(shutil.copy(originals / f"small{suffix}", tmp_path))


@pytest.mark.parametrize(  # PPO as ONNX: see below, in fights
    ("kind", "suffix"), [("ppo", ".pt"), ("c51", ".onnx"), ("c51", ".pt"), ("twins", ".onnx")]
)
def test_same_choices_as_the_original(kind, suffix, random_networks, tmp_path):
    config, path = config_for(kind), tmp_path / f"policy{suffix}"
    networks = random_networks(config, noise=kind == "c51")
    original = algorithm_of(config).policy(networks)
    export(networks, config, path)
    read, policy = load_exported(path)
    assert read == config
    size, actions = sizes_of(config)
    generator = np.random.default_rng(3)
    for rows in (1, 2, 301):
        observations = generator.normal(3.0, 4.0, (rows, size)).astype(np.float32)
        masks = generator.random((rows, actions)) < 0.5
        masks[:, 4] |= ~masks.any(axis=1)
        chosen = policy.choose(observations, masks)
        assert (chosen.dtype, chosen.shape) == (np.int64, (rows,))
        np.testing.assert_array_equal(chosen, original.choose(observations, masks))
        assert masks[np.arange(rows), chosen].all()
    assert len(set(chosen.tolist())) > 5  # the choices say something


def test_onnx_file_describes_itself(written):
    import onnx

    model = onnx.load(written(".onnx"))
    shapes = {
        value.name: [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in (*model.graph.input, *model.graph.output)
    }
    assert {name: shape[1:] for name, shape in shapes.items()} == {
        "observation": [4],
        "mask": [2],
        "action": [],
        "scores": [2],
    }
    assert all(isinstance(shape[0], str) for shape in shapes.values())  # any number of rows
    notes = {entry.key: entry.value for entry in model.metadata_props}
    assert notes["souls.format"] == "1"
    assert 'id = "CartPole-v1"' in json.loads(notes["souls.config"])
    assert json.loads(notes["souls.gym_id"]) == "CartPole-v1"
    assert json.loads(notes["souls.observation_names"]) == [f"observation_{index}" for index in range(4)]
    assert json.loads(notes["souls.action_names"]) == ["action_0", "action_1"]


@pytest.mark.parametrize("suffix", [".onnx", ".pt"])
def test_nothing_tells_where_it_was_made(written, suffix):
    path, source = written(suffix), soulsai.__path__[0].encode()
    contents = [path.read_bytes()]
    if suffix == ".pt":
        with zipfile.ZipFile(path) as archive:
            contents = [archive.read(name) for name in archive.namelist()]
    assert not any(source in content for content in contents)


@pytest.mark.parametrize("suffix", [".onnx", ".pt"])
def test_existing_file_is_not_touched(small, random_networks, tmp_path, suffix):
    path = tmp_path / f"mine{suffix}"
    path.write_text("precious")
    with pytest.raises(RunError, match="exists; give another name"):
        export(random_networks(small), small, path)
    assert path.read_text() == "precious"
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_impossible_targets(small, random_networks, tmp_path):
    with pytest.raises(MisuseError, match=r"policy\.pth ends in '\.pth'; give a name that ends in \.onnx or \.pt"):
        export(random_networks(small), small, tmp_path / "policy.pth")
    with pytest.raises(RunError, match=r"folder .* of the policy is not there"):
        export(random_networks(small), small, tmp_path / "none" / "policy.pt")


@pytest.mark.parametrize("suffix", [".onnx", ".pt"])
@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: b"no policy", lambda data: data[: len(data) // 2]])
def test_damaged_file_is_one_sentence(written, suffix, damage):
    path = written(suffix)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(
        PolicyError, match=f"small{suffix}: (is not an exported policy, or is damaged|was not written)"
    ) as caught:
        load_exported(path)
    assert "\n" not in str(caught.value)


def test_missing_file(tmp_path):
    with pytest.raises(PolicyError, match="there is no such file: write it with `souls export`"):
        load_exported(tmp_path / "none.onnx")
    with pytest.raises(MisuseError, match="an exported policy ends in"):
        load_exported(tmp_path / "none.txt")


def test_onnx_file_of_someone_else(written):
    import onnx

    path = written(".onnx")
    model = onnx.load(path)
    del model.metadata_props[:]
    onnx.save(model, path)
    with pytest.raises(PolicyError, match="was not written by `souls export`"):
        load_exported(path)


def test_newer_format(written):
    path = written(".pt")
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    (notes,) = (name for name in files if name.endswith(exported.NOTES))
    files[notes] = json.dumps(json.loads(files[notes]) | {"format": "2"}).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    with pytest.raises(PolicyError, match="has format 2, this soulsgym reads 1"):
        load_exported(path)


def test_policy_that_does_not_fit_its_config(random_networks, tmp_path):
    """As after an update of soulsgym that changed what the encoder sees."""
    small = with_settings(load_preset("smoke"), ["network.hidden=[4]", "encoder.name=soulsai74"])
    other = with_settings(small, ["encoder.history=2"])
    path = tmp_path / "old.pt"
    observation_names, action_names = names_of(small)
    export_policy(random_networks(small), other, path, observation_names=observation_names, action_names=action_names)
    with pytest.raises(RunError, match=r"takes 74 numbers and 20 actions, but its config makes 148 and 20"):
        load_candidate(str(path))


def test_missing_library_is_named(small, random_networks, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        MissingPackage, match=r"onnx and onnxscript are not installed; run: pip install '[\w-]+\[export\]'"
    ):
        export(random_networks(small), small, tmp_path / "policy.onnx")


PLAY = """
import sys
sys.modules["torch"] = sys.modules["soulsai"] = None  # importing either fails
import numpy as np
from soulsgym.actions import controls_of
from soulsgym.engine import standard_starts
from soulsgym.parts.actions import make_actions
from soulsgym.parts.encoders import make_encoder
from soulsgym.players import load_policy
from soulsgym.sim.engine import SimEngine
from soulsgym.spec import load_fight

policy, n = load_policy(sys.argv[1]), 3
notes, spec = policy.notes, load_fight(policy.notes.boss, policy.notes.variant)
engine, actions = SimEngine(spec, n), make_actions(names=notes.action_names)
encoder = make_encoder(notes.encoder["name"], n, spec, history=notes.encoder["history"])
assert encoder.names == notes.observation_names and actions.names == notes.action_names
everyone, last = np.ones(n, np.bool_), np.full(n, -1)
seen, masks, chosen = np.zeros((n, encoder.size), np.float32), np.ones((n, len(actions)), np.bool_), []
rows = {"observations": [], "masks": [], "chosen": []}
engine.reset(everyone, standard_starts(n), np.arange(n, dtype=np.uint64))
encoder.begin(engine.fights, everyone)
for _ in range(40):
    encoder.encode(engine.fights, last, everyone, seen)
    actions.open(engine.fights, masks)
    chosen = policy.choose(seen, masks)
    last = actions.numbers(chosen)
    engine.step(controls_of(last))
    for name, value in (("observations", seen), ("masks", masks), ("chosen", chosen)):
        rows[name].append(value.copy())
np.savez(sys.argv[2], **{name: np.concatenate(values) for name, values in rows.items()})
"""


def test_plays_fights_where_torch_cannot_be_imported(random_networks, tmp_path):
    config = with_settings(load_preset("smoke"), ["network.hidden=[16]", "encoder.history=2", "actions.preset=reduced"])
    networks = random_networks(config)
    export(networks, config, tmp_path / "policy.onnx")
    command = [sys.executable, "-c", PLAY, str(tmp_path / "policy.onnx"), str(tmp_path / "played.npz")]
    subprocess.run(command, check=True, timeout=LIMIT_S)
    with np.load(tmp_path / "played.npz") as played:
        assert len(played["chosen"]) == 120
        again = algorithm_of(config).policy(networks).choose(played["observations"], played["masks"])
        np.testing.assert_array_equal(played["chosen"], again)
