"""``python -m expost.cli``."""

import sys

from expost.cli.main import main

sys.exit(main())
