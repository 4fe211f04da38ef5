"""What unit tests share."""

from hypothesis import settings

settings.register_profile("kappa", deadline=None)  # cores are shared: time says nothing
settings.load_profile("kappa")
