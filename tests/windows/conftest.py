"""For the tests of the Windows backend: those that run under Wine, and those on Linux that run them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

collect_ignore = ["test_windows_backend.py", "test_windows_python.py"] if sys.platform == "win32" else ["test_parts.py"]
