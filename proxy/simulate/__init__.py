"""A scripted OpenAI-compatible provider: plays scenarios over real HTTP, offline."""
