"""What unit tests share."""

import os

from hypothesis import settings

# Cores are shared: time says nothing. The same examples each time: a run that turns red is a change's doing.
# HYPOTHESIS_PROFILE=search looks for new ones; what it finds becomes an @example.
settings.register_profile("kappa", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "kappa"))
