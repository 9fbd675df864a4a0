"""The OpenAI-compatible endpoint over an `EngineClient`."""
