"""The scripted provider, for faults that HTTP allows. Those that it does not are in `support.wires`."""

from tests.proxy.conftest import provider

__all__ = ["provider"]
