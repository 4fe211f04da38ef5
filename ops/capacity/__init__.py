"""What a fleet of a given size needs: computed from measured costs, and tried in a simulation of Spark's scheduler."""
