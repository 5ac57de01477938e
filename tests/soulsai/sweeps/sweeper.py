"""`souls sweep` with the stand-in for training in the place of `souls train`."""

import sys
from pathlib import Path

from soulsai.sweeps import trial

trial.CHILD = [sys.executable, str(Path(__file__).with_name("trainer.py"))]

if __name__ == "__main__":
    from soulsai.cli.main import main

    main()
