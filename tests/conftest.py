"""The root comes last on the path: tests run on the installed package and find their naive references."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent))
