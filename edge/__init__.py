"""The device: runtimes, sessions, drafting, and the client SDK."""
