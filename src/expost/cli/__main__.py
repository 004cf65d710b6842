"""``python -m expost.cli``."""

import sys

from expost.cli.command import main

sys.exit(main())
