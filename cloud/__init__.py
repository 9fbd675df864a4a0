"""The cloud: engine and server."""
