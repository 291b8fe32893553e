"""Wire formats of OpenAI-compatible APIs: pure functions over bytes and JSON values, no IO."""
