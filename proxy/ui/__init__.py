"""The live page: what the proxy is doing, in a browser, read from the log while somebody looks."""
