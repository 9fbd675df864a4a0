"""How a conversation reaches the cloud: connections whose bytes are counted, HTTP, server-sent events, and frames."""
