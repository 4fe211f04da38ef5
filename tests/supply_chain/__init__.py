"""What Kappa is made of: `make sbom`, `make audit`."""
