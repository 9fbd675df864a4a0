"""Decides, prompt by prompt, what the device answers, what the cloud answers, and what both write together."""
