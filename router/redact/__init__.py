"""Sends a conversation without its values: placeholders go out, and what comes back is filled in on the device."""
