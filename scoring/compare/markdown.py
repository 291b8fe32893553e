"""A comparison as Markdown for a pull request. Pure: values in, text out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scenarios.text import clip, counted, visible
from scoring.compare.comparison import Comparison
from scoring.compare.pairs import Pair
from scoring.compare.text import FLIPS_SHOWN, changed_tasks, rate_rows
from scoring.compare.words import (
    banner,
    differences,
    grounds,
    headline,
    pairing,
    reason_of,
    same_run,
    shown,
    verdict_of,
)

REASON_LENGTH = 200

_PLAIN = frozenset(" -,.()/%+=:;'")


def markdown(comparison: Comparison, scorer: str, version: str) -> str:
    """The verdict as a title, then its grounds, the rates, and what changed."""
    a, b = comparison.a, comparison.b
    lines = [f"### {escaped(headline(comparison))}", ""]
    for said in (banner(comparison), same_run(a, b)):
        lines += [f"> **{escaped(said)}**", ""] if said else []
    lines += [
        *_table(
            [
                ("", "A (baseline)", "B (candidate)"),
                ("Log", shown(a.log), shown(b.log)),
                ("Run", shown(a.run), shown(b.run)),
                ("Model", shown(a.model or "-"), shown(b.model or "-")),
                ("History", shown(a.modes.history), shown(b.modes.history)),
                *differences(comparison),
            ]
        ),
        "",
        *_table(rate_rows(comparison)),
        "",
        *(f"- {escaped(said)}" for said in (*grounds(comparison), *pairing(comparison))),
        f"- {escaped(f'Scorer: {scorer} {version}.')}",
    ]
    for what, pairs in changed_tasks(comparison):
        lines += ["", *_flips(what, pairs)]
    return "\n".join([*lines, ""])


def escaped(text: str) -> str:
    """`text` as nothing but text: what Markdown or HTML would take for markup is written as entities.

    A mention and a reference (`@`, `#`) are taken as text too, and so is the start of a link.
    """
    return "".join(
        char if char.isalnum() or char in _PLAIN else f"&#{ord(char)};" for char in visible(text)
    ).replace("://", "&#58;//")


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    titles, *rest = ["| " + " | ".join(map(escaped, row)) + " |" for row in rows]
    return [titles, "|" + " --- |" * len(rows[0]), *rest]


def _flips(what: str, pairs: Sequence[Pair]) -> Iterator[str]:
    rows = [("Task", "A", "B", "Why")]
    rows += [
        (
            f"{shown(it.scenario)}/{it.task}",
            verdict_of(it.a),
            verdict_of(it.b),
            clip(reason_of(it), REASON_LENGTH),
        )
        for it in pairs[:FLIPS_SHOWN]
    ]
    yield from (f"<details><summary>Tasks {what}: {len(pairs)}</summary>", "", *_table(rows))
    if more := len(pairs) - FLIPS_SHOWN:
        yield from ("", f"and {counted(more, 'other')}") if more > 0 else ()
    yield from ("", "</details>")
