"""Guards an upgrade: what the chain was before, whether the new image is at work, and the way back."""
