"""The console: pages that show the chain, incidents, machines, dead letters and generations. It changes nothing."""
