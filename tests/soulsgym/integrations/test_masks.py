"""Masks inside of the observation."""

import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import soulsgym  # noqa: F401 (registers the ids)
from soulsgym.errors import MisuseError
from soulsgym.integrations.masks import MaskInObservation

RAW, ENCODED = "SoulsGymIudexSim-v0", "SoulsGymIudexSimEncoded-v0"


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
@pytest.mark.parametrize("name", [RAW, ENCODED])
def test_the_observation_has_both(name):
    env = MaskInObservation(gymnasium.make(name, actions="reduced"))
    check_env(env, skip_render_check=True)
    plain = gymnasium.make(name, actions="reduced")
    observation, info = env.reset(seed=1)
    seen, _ = plain.reset(seed=1)
    for _ in range(50):
        assert env.observation_space.contains(observation)
        assert observation.keys() == {"observations", "action_mask"}
        assert (observation["action_mask"] == info["action_mask"]).all()
        np.testing.assert_equal(observation["observations"], seen)
        action = int(np.flatnonzero(info["action_mask"])[-1])
        observation, _, _, _, info = env.step(action)
        seen, *_ = plain.step(action)


def test_keys_are_chosen_and_kept_in_the_spec():
    env = MaskInObservation(gymnasium.make(ENCODED), observation="obs", mask="mask")
    again = gymnasium.make(env.spec)
    assert set(again.reset(seed=1)[0]) == set(pickle.loads(pickle.dumps(env)).reset(seed=1)[0]) == {"obs", "mask"}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MaskInObservation(gymnasium.make("Pendulum-v1")), "masks are of Discrete actions alone"),
        (lambda: MaskInObservation(gymnasium.make(RAW), "same", "same"), "are both 'same'; give two keys"),
        (lambda: MaskInObservation(gymnasium.make("CartPole-v1")).reset(), "info has no action_mask"),
    ],
)
def test_what_has_no_mask_is_refused(make, message):
    with pytest.raises(MisuseError, match=message):
        make()
