"""max_retries: what is tried again, and how often."""

import pytest

from soulsgym.envs.utils import RetriesExceededError, max_retries
from soulsgym.errors import MisuseError
from soulsgym.exception import ResetError, SoulsGymException


def failing(times, error):
    """A function that fails so often, and its calls."""
    calls = []

    @max_retries(retries=3)
    def enter(door, *, key="brass"):
        """Enter."""
        calls.append((door, key))
        if len(calls) <= times:
            raise error
        return door

    return enter, calls


def test_it_is_tried_again_with_the_same_arguments():
    enter, calls = failing(2, ResetError("closed"))
    assert enter("fog", key="iron") == "fog"
    assert calls == [("fog", "iron")] * 3
    assert (enter.__name__, enter.__doc__) == ("enter", "Enter.")


def test_in_the_end_it_says_what_failed():
    enter, calls = failing(9, ResetError("closed"))
    with pytest.raises(RetriesExceededError, match="enter failed 3 times, at last: closed") as caught:
        enter("fog")
    assert isinstance(caught.value.__cause__, ResetError)
    assert isinstance(caught.value, SoulsGymException)
    assert len(calls) == 3


def test_other_errors_are_not_tried_again():
    enter, calls = failing(1, KeyError("bug"))
    with pytest.raises(KeyError):
        enter("fog")
    assert len(calls) == 1


def test_at_least_once():
    with pytest.raises(MisuseError, match="retries 0 is not possible"):
        max_retries(0)
