"""Settings every test shares."""

from hypothesis import settings

# Machines are shared and slow down at will: no example may fail for taking long. Derandomised, so that a failure can be
# seen again.
settings.register_profile("expost", deadline=None, derandomize=True)
settings.load_profile("expost")
