"""`python -m ocria` is the same program as `ocria`."""

import sys

from ocria.cli import main

if __name__ == "__main__":
    sys.exit(main())
