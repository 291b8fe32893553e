"""Verdicts and figures of a log's Runs, kept in a file beside it, and what moved since the last time.

The log itself is never touched. The file depends on the scores alone, not on the clock or on the
order in which they came: the same scores give the same bytes. It is written anew each time and then put
in place at once, so that a reader never sees half of it; of two that save at once, the last one wins.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import astuple, fields
from pathlib import Path
from tempfile import TemporaryDirectory

from scenarios.text import visible
from scoring.metrics.figures import Figure
from scoring.output.moved import Moved, Saved, Verdict, VerdictKey
from scoring.report import RunReport, task_rows

APPLICATION = "wildtoolbench-proxy scores"
SCHEMA_VERSION = 1

_SCHEMA = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value)",
    """CREATE TABLE verdicts (
    run TEXT NOT NULL,
    session TEXT NOT NULL,
    scenario TEXT NOT NULL,
    scenario_hash TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    task INTEGER NOT NULL,      -- from 1
    scorer TEXT NOT NULL,
    scorer_version TEXT NOT NULL,
    config_hash TEXT NOT NULL,  -- sha256 of the run's configuration
    label TEXT,                 -- null: not scored, for the reason
    verdict TEXT,               -- of live runs, and where a wrong step does not end its task
    rule TEXT,                  -- the first that was broken
    reason TEXT,
    error_class TEXT,
    is_optimal INTEGER NOT NULL,
    PRIMARY KEY (run, session, task, scorer)
)""",
    """CREATE TABLE figures (
    run TEXT NOT NULL,
    scorer TEXT NOT NULL,       -- empty: of no scorer
    key TEXT NOT NULL,
    value REAL,                 -- null where n is 0
    n INTEGER NOT NULL,
    successes INTEGER,
    low REAL,
    high REAL,
    PRIMARY KEY (run, scorer, key)
)""",
)

FigureRow = tuple[str, str, str, float | None, int, int | None, float | None, float | None]
"""The columns of `figures`."""


class SavedError(Exception):
    """Scores that cannot be saved. One line: what, where, how to mend."""


def scores_path(log: Path) -> Path:
    """`agent.scores.db` for `agent.db`, in the same folder."""
    return log.with_name(log.name.removesuffix(".db") + ".scores.db")


def save(path: Path, report: RunReport) -> Saved:
    """Writes the scores of a Run beside its log, which is at `path`. Raises SavedError.

    They take the place of those that the same scorers gave the same Run; all others stay.
    """
    target = scores_path(path)
    old_verdicts, old_figures = _read(target)
    scorers = {it.scorer.name for it in report.scored}
    run = _text(report.run)
    before = {it.key: it for it in old_verdicts if it.run == run and it.scorer in scorers}
    after = _verdicts(report)
    kept = [it for it in old_verdicts if it.key not in before]
    replaced = scorers | {""}
    figures = [it for it in old_figures if it[0] != run or it[1] not in replaced]
    _write(target, [*kept, *after.values()], [*figures, *_figures(report)])
    return Saved(
        target,
        run,
        len(before.keys() & after.keys()),
        tuple(
            Moved(before[key], verdict)
            for key, verdict in after.items()
            if key in before and before[key].told != verdict.told
        ),
        tuple(verdict for key, verdict in after.items() if key not in before),
        tuple(verdict for key, verdict in sorted(before.items()) if key not in after),
    )


def _verdicts(report: RunReport) -> dict[VerdictKey, Verdict]:
    """The verdicts on every Task by every scorer. Raises SavedError for two Sessions of one name."""
    config = hashlib.sha256(json.dumps(report.config, sort_keys=True).encode()).hexdigest()
    versions = {it.scorer.name: it.scorer.version for it in report.scored}
    found: dict[VerdictKey, Verdict] = {}
    for row in task_rows(report):
        for scorer, score in row.scores.items():
            error_class = row.classes[scorer]
            verdict = Verdict(
                run=_text(report.run),
                session=_text(row.session.session),
                scenario=_text(row.session.scenario.id),
                scenario_hash=_text(row.session.scenario.hash),
                epoch=row.session.epoch,
                task=row.position + 1,
                scorer=scorer,
                scorer_version=versions[scorer],
                config_hash=config,
                label=score.label,
                verdict=score.verdict,
                rule=None if score.evidence is None else _text(score.evidence.rule),
                reason=None if score.reason is None else _text(score.reason),
                error_class=None if error_class is None else error_class.name,
                is_optimal=int(score.is_optimal),
            )
            if verdict.key in found:
                raise SavedError(
                    f"run {visible(report.run)} has two sessions named {visible(verdict.session)}, "
                    "so its scores were not saved"
                )
            found[verdict.key] = verdict
    return found


def _figures(report: RunReport) -> Iterator[FigureRow]:
    for scorer, figures in [*((it.scorer.name, it.figures) for it in report.scored), ("", report.figures)]:
        yield from (_figure(report.run, scorer, figure) for figure in figures)


def _figure(run: str, scorer: str, it: Figure) -> FigureRow:
    return _text(run), scorer, _text(it.key), it.value, it.n, it.successes, it.low, it.high


def _text(text: str) -> str:
    """`text` as SQLite can store it: a lone surrogate is spelt out."""
    return text.encode("utf-8", "backslashreplace").decode()


def _read(path: Path) -> tuple[list[Verdict], list[FigureRow]]:
    """What is saved at `path`; nothing where there is no file. Raises SavedError."""
    if not os.path.lexists(path):
        return [], []
    if not path.is_file():
        raise SavedError(f"{path}: is no file, so nothing was saved: move it away")
    try:
        # Immutable: nothing is made beside a file that may not be ours.
        with closing(
            sqlite3.connect(path.resolve().as_uri() + "?mode=ro&immutable=1", uri=True)
        ) as connection:
            _check(path, connection)
            columns = ", ".join(field.name for field in fields(Verdict))
            verdicts = [Verdict(*row) for row in connection.execute(f"SELECT {columns} FROM verdicts")]
            return verdicts, connection.execute("SELECT * FROM figures").fetchall()
    except sqlite3.Error as error:
        raise SavedError(
            f"{path}: cannot be read as saved scores ({error}), so nothing was saved: move it away"
        ) from error


def _check(path: Path, connection: sqlite3.Connection) -> None:
    meta: Mapping[object, object] = {}
    if [row[1] for row in connection.execute("PRAGMA table_info(meta)")] == ["key", "value"]:
        meta = dict(connection.execute("SELECT key, value FROM meta"))
    if meta.get("application") != APPLICATION:
        raise SavedError(f"{path}: is no file of saved scores, so nothing was saved: move it away")
    if meta.get("schema_version") != SCHEMA_VERSION:
        raise SavedError(
            f"{path}: is from a newer version (schema {visible(str(meta.get('schema_version')))}, this one "
            f"writes {SCHEMA_VERSION}), so nothing was saved: upgrade, or move it away"
        )


def _write(path: Path, verdicts: Iterable[Verdict], figures: Iterable[FigureRow]) -> None:
    """Puts a new file in the place of `path`, made in one way from the same rows. Raises SavedError."""
    try:
        with TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as folder:
            made = Path(folder) / path.name
            with closing(sqlite3.connect(made, isolation_level=None)) as connection:
                connection.execute("BEGIN")
                for statement in _SCHEMA:
                    connection.execute(statement)
                meta = [("application", APPLICATION), ("schema_version", SCHEMA_VERSION)]
                connection.executemany("INSERT INTO meta VALUES (?, ?)", meta)
                _insert(connection, "verdicts", map(astuple, sorted(verdicts, key=lambda it: it.key)))
                _insert(connection, "figures", sorted(figures, key=lambda row: row[:3]))
                connection.execute("COMMIT")
            os.replace(made, path)
    except (OSError, sqlite3.Error) as error:
        what = error.strerror if isinstance(error, OSError) else str(error)
        raise SavedError(f"{path}: cannot be written ({what}), so the scores were not saved") from error


def _insert(connection: sqlite3.Connection, table: str, rows: Iterable[tuple[object, ...]]) -> None:
    for row in rows:
        connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
