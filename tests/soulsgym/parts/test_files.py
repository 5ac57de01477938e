"""Python files of the user's own: imported once, known where they are in use, refused in one sentence when wrong."""

import os
import sys

import pytest

from soulsgym.errors import MisuseError
from soulsgym.parts.files import parts_digest, parts_in, read_parts
from soulsgym.parts.registry import find, known_names, register, used_names

IMPORT = "from soulsgym.parts.registry import register\n"


def encoder(name="mine", value="fights"):
    return f"{IMPORT}\n\n@register('encoder', '{name}')\ndef {name}(fights):\n    return {value}\n"


@pytest.fixture
def file(tmp_path):
    """A function that writes a file of parts and returns its path."""

    def write(text, name="my_parts.py"):
        place = tmp_path / name
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(text if isinstance(text, bytes) else text.encode())
        return place

    return write


def refusal(*files):
    with pytest.raises(MisuseError) as caught, parts_in(files):
        pass
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_names_of_a_file_are_known_while_it_is_in_use(file):
    place = file(encoder())
    with parts_in([place]):
        assert find("encoder", "mine")([3]) == [3]
        assert known_names("encoder")[-1] == "mine"
        assert "player" in known_names("encoder")
    with pytest.raises(MisuseError, match="encoder 'mine' is not known"):
        find("encoder", "mine")


def test_no_files_change_nothing():
    before = used_names()
    with parts_in([]):
        assert used_names() == before


def test_a_file_and_its_copy_are_imported_once(file):
    text = encoder() + "import sys\nsys.souls_test_count = getattr(sys, 'souls_test_count', 0) + 1\n"
    one, copy = file(text), file(text.replace("\n", "\r\n"), "copy/other_name.py")
    with parts_in([one]):
        first = find("encoder", "mine")
    with parts_in([copy, one]):
        assert find("encoder", "mine") is first
    assert sys.souls_test_count == 1
    del sys.souls_test_count


def test_two_versions_of_a_file_do_not_meet(file):
    """As when two runs are compared."""
    old, new = file(encoder(value="1"), "a/my_parts.py"), file(encoder(value="2"), "b/my_parts.py")
    with parts_in([old]):
        assert find("encoder", "mine")(None) == 1
    with parts_in([new]):
        assert find("encoder", "mine")(None) == 2
    with parts_in([old]):
        assert find("encoder", "mine")(None) == 1


def test_a_changed_file_is_imported_again(file):
    with parts_in([file(encoder(value="1"))]):
        assert find("encoder", "mine")(None) == 1
    with parts_in([file(encoder(value="2"))]):
        assert find("encoder", "mine")(None) == 2


def test_what_is_defined_in_a_file_is_found_where_python_looks_for_it(file):
    text = "from dataclasses import dataclass\nfrom soulsgym.parts.rewards import term\nfrom numba import njit\n" \
        "@dataclass\nclass Weights:\n    a: 'int' = 3\n" \
        "@term('own', needs=['dodged'])\n@njit\ndef own(fight):\n    return 1.0 * fight.step\n"  # fmt: skip
    with parts_in([file(text)]):
        assert find("reward term", "own").needs == ("dodged",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\ny = (\n", ", line 2: SyntaxError: '(' was never closed"),
        ("def f():\n    return 1 / 0\n\n\nf()\n", ", line 2: ZeroDivisionError: division by zero"),
        ("raise RuntimeError('first\\nsecond')", ", line 1: RuntimeError: first second"),
        ("import sys\nsys.exit(3)\n", ", line 2: SystemExit: 3"),
        ("import json\njson.loads('{')\n", ", line 2: JSONDecodeError: "),
        ("import nowhere\n", ", line 1: ModuleNotFoundError: No module named 'nowhere'; a file of parts stands alone"),
        ("\nfrom .more import f\n", ", line 2: ImportError: attempted relative import with no known parent package; a"),
        ("", ": registers no part; put @term(...) or @register(...) above what it defines"),
        ("x = 1\n", ": registers no part"),
        (encoder() + encoder("player"), ", line 10: encoder 'player' is already there, from soulsgym."),
        (encoder() + encoder().replace("def mine", "def more"), ", line 10: encoder 'mine' is already there, from my"),
        (f"{IMPORT}register('encoders', 'mine')\n", ", line 2: kind of part 'encoders' is not known, did you mean 'en"),
        (b"# \xff\n", ": byte 2 is not UTF-8; save the file as UTF-8"),
        ("a\0b", "null byte"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_imported_is_one_sentence(file, text, message):
    place = file(text)
    before = {name for name in sys.modules if "@" in name}
    assert refusal(place).startswith(str(place))
    assert message in refusal(place)
    assert {name for name in sys.modules if "@" in name} == before


def test_a_corrected_file_is_imported(file):
    refusal(file("1 / 0"))
    with parts_in([file(encoder())]):
        assert find("encoder", "mine")


def test_files_that_are_not_there(tmp_path):
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "parts.txt").touch()
    assert refusal(tmp_path / "none.py").endswith(
        "none.py: there is no such file; give the path of a Python file with parts"
    )
    assert refusal(tmp_path / "folder.py").endswith("folder.py: is a folder; give a Python file in it")
    assert refusal(tmp_path).endswith(": is a folder; give a Python file in it")
    assert refusal(tmp_path / "parts.txt").endswith("parts.txt: is no Python file; give one that ends in .py")
    assert "cannot be read" in refusal(f"{'x' * 300}.py")
    assert "cannot be read" in refusal("a\0b.py")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(file):
    place = file(encoder())
    place.chmod(0)
    assert "cannot be read: Permission denied" in refusal(place)


def test_one_name_in_two_files(file):
    one, other = file(encoder(value="1"), "a/my.py"), file(encoder(value="2"), "b/my.py")
    assert refusal(one, other) == f"{other}: encoder 'mine' is in {one} too; choose another name"


def test_a_name_that_a_program_has_given_already(file):
    place = file(encoder())
    register("encoder", "mine")(len)
    assert refusal(place) == f"{place}: encoder 'mine' is in builtins.len already; choose another name"


def test_marks_and_line_ends_of_windows_do_not_count(file):
    unix, windows = file("a = 1\n", "a.py"), file(b"\xef\xbb\xbfa = 1\r\n", "b.py")
    assert parts_digest(read_parts(unix)) == parts_digest(read_parts(windows))
