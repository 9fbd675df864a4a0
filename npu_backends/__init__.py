"""One small adapter per chip, and the step interface that engines and runtimes call."""
