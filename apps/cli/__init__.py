"""The `hybrid` command."""
