"""How the project is built, as figures: `make house`."""
