"""The cloud side of `/v1/speculate`."""
