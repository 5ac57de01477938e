"""SoulsGym's names of errors catch ours."""

import pytest

from soulsgym import errors, exception

NAMES = [name for name in exception.__all__ if name != "SoulsGymException"]


@pytest.mark.parametrize("name", NAMES)
def test_all_are_of_one_kind_and_take_a_sentence(name):
    kind = getattr(exception, name)
    assert issubclass(kind, exception.SoulsGymException)
    with pytest.raises(exception.SoulsGymException, match="the sword is stuck"):
        raise kind("the sword is stuck")


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (errors.ResetNeeded("call reset()"), "ResetNeeded"),
        (errors.StageFailed("fog wall", "nobody came"), "ResetError"),
        (errors.GameNotFound("not running"), "GameStateError"),
        (errors.SpeedControlError("no library"), "InjectionFailure"),
        (errors.MisuseError("no such boss"), "SoulsGymException"),
    ],
)
def test_what_is_raised_here_is_caught_by_the_name_that_its_users_know(ours, theirs):
    with pytest.raises(getattr(exception, theirs)):
        raise ours
