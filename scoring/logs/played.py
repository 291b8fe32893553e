"""What a log holds of a Run's figures, read in one state of it: Trajectories, findings, what Steps cost."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from scoring.logs.reader import LAST_ATTEMPTS, Log, natural, read_trajectories
from scoring.logs.usage import read_usage
from scoring.metrics.usage import Usage
from scoring.types import Finding, Trajectory

_FINDINGS = f"""{LAST_ATTEMPTS} SELECT last.scenario_id, last.epoch, last.name, findings
    FROM last JOIN exchanges ON exchanges.session_id = last.id
    WHERE place = 1 AND findings IS NOT NULL ORDER BY arrival"""


@dataclass(frozen=True, slots=True)
class Played:
    """A Run as it was played. A finding is in every later request of its Session too: the first counts."""

    trajectories: tuple[Trajectory, ...]
    findings: tuple[Finding, ...]
    usage: Usage


def read_played(log: Log, run_id: str) -> Played:
    """Everything that the figures of a Run are made of. Raises LogError."""
    return log.ask(lambda connection: played_from(connection, log.path, run_id))


def played_from(connection: sqlite3.Connection, path: Path, run_id: str) -> Played:
    """As `read_played`, on a connection that is open; `path` is for error texts."""
    return Played(
        tuple(read_trajectories(connection, path, run_id)),
        _findings(connection, run_id),
        read_usage(connection, run_id),
    )


def _findings(connection: sqlite3.Connection, run_id: str) -> tuple[Finding, ...]:
    """By Session, and in the order in which they were found."""
    rows = connection.execute(_FINDINGS, {"run": run_id}).fetchall()
    found: dict[tuple[str, int, str], Finding] = {}
    for _, _, session, findings in sorted(rows, key=lambda row: (natural(row[0]), row[1])):
        told = json.loads(findings)
        if not isinstance(told, list):
            raise TypeError("the findings of an exchange are no JSON array")
        for it in told:
            finding = Finding(session, it["turn"], it["what"], it["detail"])
            found.setdefault((finding.session, finding.turn, finding.what), finding)
    return tuple(found.values())
