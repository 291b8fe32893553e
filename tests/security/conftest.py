"""The scripted provider, for attacks on what stands before it."""

from tests.proxy.conftest import provider

__all__ = ["provider"]
