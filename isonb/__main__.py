"""``python -m isonb``: the command line of :mod:`isonb.cli`.

In a folder of somebody else call ``isonb`` or ``python -P -m isonb``: what Python itself finds there under the name
isonb runs before a line of ours.
"""

import os
import sys

if not sys.flags.safe_path and sys.path[0] in ("", os.getcwd()):
    del sys.path[0]  # the current folder, whose torch.py or json.py anybody may have written

from isonb.cli import main

if __name__ == "__main__":
    sys.exit(main())
