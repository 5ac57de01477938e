"""Modules of this folder that the tests here share."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
