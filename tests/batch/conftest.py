"""Makes the neighbouring modules importable by name in importlib mode."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
