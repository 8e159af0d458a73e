"""The root comes last on the path: tests run on the installed package and find their naive references."""

import sys
from pathlib import Path

from hypothesis import settings

sys.path.append(str(Path(__file__).parent.parent))

# A first call may compile a kernel, and the same run must give the same tests.
settings.register_profile("streamlearn", deadline=None, derandomize=True)
settings.load_profile("streamlearn")
