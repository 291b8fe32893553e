"""What a log holds of a Run's figures: Trajectories, and what agents lost or changed of their history."""

from __future__ import annotations

import json
import sqlite3

from scoring.log import LAST_ATTEMPTS, Log, natural, read_trajectories
from scoring.types import Finding, Trajectory

_FINDINGS = f"""{LAST_ATTEMPTS} SELECT last.scenario_id, last.epoch, last.name, findings
    FROM last JOIN exchanges ON exchanges.session_id = last.id
    WHERE place = 1 AND findings IS NOT NULL ORDER BY arrival"""


def trajectories_and_findings(log: Log, run_id: str) -> tuple[list[Trajectory], tuple[Finding, ...]]:
    """`Log.trajectories`, and the findings of the same attempts in one state of the log. Raises LogError.

    A finding is in every later request of its Session too: the first one counts. They come by
    Session, and in the order in which they were found.
    """
    return log.ask(lambda it: (read_trajectories(it, log.path, run_id), _findings(it, run_id)))


def _findings(connection: sqlite3.Connection, run_id: str) -> tuple[Finding, ...]:
    rows = connection.execute(_FINDINGS, {"run": run_id}).fetchall()
    found: dict[tuple[str, int, str], Finding] = {}
    for _, _, session, findings in sorted(rows, key=lambda row: (natural(row[0]), row[1])):
        for it in json.loads(findings):
            finding = Finding(session, it["turn"], it["what"], it["detail"])
            found.setdefault((finding.session, finding.turn, finding.what), finding)
    return tuple(found.values())
