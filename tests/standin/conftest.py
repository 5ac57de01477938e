"""The stand-in for the tests beside it; all other tests get the same fixtures through `pytest_plugins`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from standin_fixtures import *  # noqa: F403
