"""`python -m pegboard`, the same as the command `pegboard`."""

import sys

from pegboard.cli.main import main

sys.exit(main())
