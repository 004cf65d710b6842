"""Settings every test shares."""

import signal

from hypothesis import settings

# Machines are shared and slow down at will: no example may fail for taking long. Derandomised, so that a failure can be
# seen again.
settings.register_profile("expost", deadline=None, derandomize=True)
settings.load_profile("expost")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell leaves it for what it starts in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)
