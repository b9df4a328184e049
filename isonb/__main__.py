"""``python -m isonb``: the command line of :mod:`isonb.cli`."""

import sys

from isonb.cli import main

if __name__ == "__main__":
    sys.exit(main())
