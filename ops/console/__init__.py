"""The console: pages that show the chain and what it has found, and on which operators act."""
