"""Our own proxy passes every probe, in every mode that it applies to, with its log looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from proxy.server import running
from proxy.settings import Settings
from tests.conformance.bench import Mode, Target, new_key, patient
from tests.conformance.log import Log
from tests.conformance.probe import Probe, run_probe
from tests.conformance.probes import PROBES
from tests.conformance.run import providing

PATIENCE = 60.0
CASES = [pytest.param(probe, mode, id=f"{mode}-{probe.name}") for probe in PROBES for mode in probe.modes]


@pytest.mark.parametrize(("probe", "mode"), CASES)
async def test_our_proxy_passes(probe: Probe, mode: Mode, tmp_path: Path) -> None:
    async with providing(0, PATIENCE) as provider:
        settings = Settings(
            log=tmp_path / "log.db",
            provider=f"http://127.0.0.1:{provider.port}/v1",
            scenarios=("bundled",) if mode == "session" else (),
            **probe.settings,
        )
        async with running(settings, environ={}) as proxy:
            target = patient(Target(f"{proxy.base_url}/v1", new_key()), PATIENCE)
            result = await run_probe(probe, mode, target, provider, Log(settings.log, PATIENCE))
    assert result.passed, result.seen


def test_probes_have_names_of_their_own() -> None:
    names = [probe.name for probe in PROBES]
    assert sorted(set(names)) == sorted(names)
