"""SoulsGym's modules, names and signatures: all that its users' scripts may ask for."""

import importlib
import inspect
import os
import subprocess
import sys

import gymnasium
import pytest

import soulsgym

NAMES = {
    "soulsgym": ["available_envs", "set_log_level", "__version__"],
    "soulsgym.core": [],
    "soulsgym.core.game_input": ["GameInput"],
    "soulsgym.core.game_state": ["GameState"],
    "soulsgym.core.speedhack": ["SpeedHackConnector", "inject_dll"],
    "soulsgym.core.static": [
        "actions", "address_base_patterns", "address_bases", "addresses", "bonfires", "boss_animations", "coordinates",
        "critical_player_animations", "keybindings", "keymap", "player_animations", "player_stats",
    ],
    "soulsgym.core.utils": ["get_pid", "wrap_to_pi"],
    "soulsgym.envs": [],
    "soulsgym.envs.darksouls3": [],
    "soulsgym.envs.darksouls3.iudex": ["IudexEnv", "IudexEnvDemo", "IudexImgEnv", "IudexState"],
    "soulsgym.envs.darksouls3.vordt": ["VordtEnv", "VordtState"],
    "soulsgym.envs.game_state": ["GameState"],
    "soulsgym.envs.soulsenv": ["SoulsEnv", "SoulsEnvDemo"],
    "soulsgym.envs.utils": ["max_retries"],
    "soulsgym.exception": [
        "GameStateError", "InjectionFailure", "InvalidBossStateError", "InvalidGameSettings", "InvalidPlayerStateError",
        "LockOnFailure", "ResetError", "ResetNeeded", "SoulsGymException",
    ],
    "soulsgym.games": ["DarkSoulsIII", "EldenRing", "Game", "game_factory"],
    "soulsgym.games.darksouls3": ["DarkSoulsIII"],
    "soulsgym.games.eldenring": ["EldenRing"],
    "soulsgym.games.game": ["Game", "StaticGameData"],
}  # fmt: skip

SIGNATURES = {
    "envs.darksouls3.iudex:IudexEnv": "game_speed=1.0, phase=1, random_player_pose=False, skip_steps=False",
    "envs.darksouls3.iudex:IudexImgEnv": (
        "game_speed=1.0, phase=1, random_player_pose=False, skip_steps=False, resolution=(90, 160)"
    ),
    "envs.darksouls3.iudex:IudexEnvDemo": "game_speed=1.0, random_player_pose=False",
    "envs.darksouls3.vordt:VordtEnv": "game_speed=1.0, phase=1, skip_steps=False",
    "envs.darksouls3.iudex:IudexEnv.compute_reward": "game_state, next_game_state",
    "envs.darksouls3.vordt:VordtEnv.compute_reward": "game_state, next_game_state",
    "envs.soulsenv:SoulsEnv.reset": "self, seed=None, options=None",
    "envs.soulsenv:SoulsEnv.step": "self, action",
    "envs.soulsenv:SoulsEnv.close": "self",
    "envs.soulsenv:SoulsEnv.render": "self",
    "envs.soulsenv:SoulsEnv.game_state": "self",
    "envs.soulsenv:SoulsEnv.current_valid_actions": "self",
    "envs.utils:max_retries": "retries=3",
    "core.game_input:GameInput": "game_id, game_speed=1.0",
    "core.game_input:GameInput.add_action": "self, action",
    "core.game_input:GameInput.add_actions": "self, actions",
    "core.game_input:GameInput.update_input": "self",
    "core.game_input:GameInput.single_action": "self, action, press_time=0.15",
    "core.game_input:GameInput.reset": "self",
    "core.game_state:GameState.copy": "self",
    "core.game_state:GameState.as_dict": "self, deepcopy=True",
    "core.game_state:GameState.as_json": "self",
    "core.game_state:GameState.from_dict": "data_dict",
    "core.speedhack:SpeedHackConnector": "process_name='DarkSoulsIII.exe'",
    "core.speedhack:SpeedHackConnector.set_game_speed": "self, value",
    "core.speedhack:inject_dll": "process_name, dll_path=None",
    "core.utils:get_pid": "process_name",
    "games:game_factory": "game_id",
    "games.game:StaticGameData": "game_id",
    "games:DarkSoulsIII": "",
    "games:EldenRing": "",
    "games:DarkSoulsIII.timed": "end, start",
    "games:DarkSoulsIII.sleep": "self, seconds",
    "games:DarkSoulsIII.reset_boss_hp": "self, boss",
}
"""By place: the parameters that SoulsGym has. Ours may have more, with defaults, after them."""

GAME_STATE = [
    "phase", "player_hp", "player_max_hp", "player_sp", "player_max_sp", "boss_hp", "boss_max_hp", "player_pose",
    "boss_pose", "camera_pose", "player_animation", "player_animation_duration", "boss_animation",
    "boss_animation_duration", "lock_on",
]  # fmt: skip

ENVIRONMENT = ["ENV_ID", "step_size", "phase", "obs", "info", "game_id", "game_state", "current_valid_actions"]
BOTH_GAMES = [
    "img", "img_resolution", "player_hp", "player_max_hp", "player_sp", "player_max_sp", "reset_player_hp",
    "reset_player_sp", "player_pose", "player_animation", "allow_player_death", "player_stats", "camera_pose",
    "last_bonfire", "lock_on", "gravity", "allow_weapon_durability_dmg", "is_ingame", "time", "timed", "sleep",
    "game_speed", "reload", "game_id", "process_name", "data", "pause", "resume", "clear_cache",
]  # fmt: skip
OF_DARK_SOULS = [
    "window_resolution", "screen_mode", "player_animation_time", "player_animation_max_time",
    "player_frost_resistance", "player_frost_effect", "iudex_flags", "vordt_flags", "iudex_hp", "vordt_hp",
    "iudex_max_hp", "vordt_max_hp", "reset_boss_hp", "iudex_pose", "vordt_pose", "iudex_animation", "vordt_animation",
    "iudex_animation_time", "iudex_animation_max_time", "iudex_attacks", "vordt_attacks", "allow_attacks", "allow_hits",
    "allow_moves", "allow_deaths", "lock_on_bonus_range", "los_lock_on_deactivate_time",
]  # fmt: skip
OF_ELDEN_RING = ["player_mp", "player_max_mp", "reset_player_mp"]


def found(place):
    module, _, path = place.partition(":")
    thing = importlib.import_module(f"soulsgym.{module}")
    for name in path.split("."):
        thing = getattr(thing, name)
    return thing


@pytest.mark.parametrize("module", NAMES)
def test_modules_have_their_names(module):
    there = importlib.import_module(module)
    assert [name for name in NAMES[module] if not hasattr(there, name)] == []


@pytest.mark.parametrize("place", SIGNATURES)
def test_signatures_begin_as_its_users_know_them(place):
    own = [one for one in inspect.signature(found(place)).parameters.values() if one.kind is not one.VAR_KEYWORD]
    given = [one.name if one.default is one.empty else f"{one.name}={one.default!r}" for one in own]
    wanted = SIGNATURES[place].split(", ") if SIGNATURES[place] else []
    if "resolution" in SIGNATURES[place]:  # the comma of the tuple
        wanted[-2:] = [", ".join(wanted[-2:])]
    assert given[: len(wanted)] == wanted
    more = own[len(wanted) :]
    assert all(one.default is not one.empty for one in more)


def test_a_game_state_has_their_fields_and_defaults():
    state = found("core.game_state:GameState")()
    assert list(state.as_dict()) == GAME_STATE
    assert (state.phase, state.player_max_hp, state.boss_max_hp, state.lock_on) == (1, 1, 1, False)
    assert (state.player_animation, state.boss_animation) == ("NoAnimation", "NoAnimation")
    assert (state.player_pose.shape, state.boss_pose.shape, state.camera_pose.shape) == ((4,), (4,), (6,))


@pytest.mark.parametrize("place", ["envs.darksouls3.iudex:IudexEnv", "envs.simulated:FightEnv"])
def test_environments_have_their_attributes(place):
    assert [name for name in ENVIRONMENT if not hasattr(found(place), name)] == []


def test_classes_are_derived_from_each_other_as_theirs_are():
    iudex, soulsenv = found("envs.darksouls3.iudex:IudexEnv"), importlib.import_module("soulsgym.envs.soulsenv")
    for name in ("IudexEnvDemo", "IudexImgEnv"):
        assert issubclass(found(f"envs.darksouls3.iudex:{name}"), iudex)
    assert issubclass(found("envs.darksouls3.iudex:IudexEnvDemo"), soulsenv.SoulsEnvDemo)
    assert issubclass(iudex, soulsenv.SoulsEnv)
    assert issubclass(soulsenv.SoulsEnv, gymnasium.Env)
    assert issubclass(found("games:DarkSoulsIII"), found("games:Game"))


def test_classes_know_their_fight():
    iudex, vordt = found("envs.darksouls3.iudex:IudexEnv"), found("envs.darksouls3.vordt:VordtEnv")
    assert (iudex.ENV_ID, iudex.BONFIRE, iudex.step_size) == ("iudex", "Cemetery of Ash", 0.1)
    assert (vordt.ENV_ID, vordt.BONFIRE) == ("vordt", "Dancer of the Boreal Valley")
    low, high = iudex.ARENA_LIM_LOW, vordt.ARENA_LIM_HIGH
    assert low == pytest.approx([110.0, 540.0, -73.0, -3.1416], abs=1e-4)
    assert high == pytest.approx([42.0, 46.0, -15.0, 3.1416], abs=1e-4)


@pytest.mark.parametrize(
    ("game", "more"), [("DarkSoulsIII", OF_DARK_SOULS), ("EldenRing", OF_ELDEN_RING)], ids=["dark souls", "elden ring"]
)
def test_games_have_their_values(game, more):
    assert [name for name in (*BOTH_GAMES, *more) if not hasattr(found(f"games:{game}"), name)] == []


def test_ids_and_their_limit():
    for name in ("SoulsGymIudex-v0", "SoulsGymIudexImg-v0", "SoulsGymIudexDemo-v0", "SoulsGymVordt-v0"):
        assert name in soulsgym.available_envs
        spec = gymnasium.spec(name)
        assert (spec.max_episode_steps, spec.nondeterministic) == (3000, True)


def test_the_version_is_after_theirs():
    assert int(soulsgym.__version__.partition(".")[0]) >= 2


@pytest.mark.slow
def test_every_module_can_be_the_first_and_needs_no_game():
    """Each alone in a new interpreter: nothing looks for a game, a screen or Windows before it is used."""
    program = "import sys, importlib; [importlib.import_module(name) for name in sys.argv[1:]]"
    without_screen = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "WAYLAND_DISPLAY")}
    for names in (list(NAMES), list(reversed(NAMES))):
        done = subprocess.run(
            [sys.executable, "-W", "error::ImportWarning", "-c", program, *names],
            env=without_screen, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
