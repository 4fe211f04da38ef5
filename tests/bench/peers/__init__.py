"""The chain's first two stages in other engines, measured beside ours."""
