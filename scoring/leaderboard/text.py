"""The published figures as text: a Run's place among them, or how to get a baseline instead. Pure."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from scenarios.load import BUNDLED, BUNDLED_WORD
from scenarios.text import clip, visible, width
from scoring.leaderboard.board import Leaderboard, Reproduction, RunFigures, differs
from scoring.metrics.figures import Figure

COLUMNS = 100
NAME_LENGTH = 40
GAP = "  "
RUN_MARK, SAME_MARK = ">", "~"
Row = tuple[str, ...]

BANNER = (
    "The published figures were made with rules that can only be reconstructed: the code that was released "
    "gives others. Ranks inside overlapping intervals mean nothing.",
)
RUN_NOTES = (
    f"{RUN_MARK} is this run, under the reconstructed rules (scorer `published`), at the rank it would have.",
    f"{SAME_MARK} marks a figure whose difference from the run's is not significant: the 95 % interval of "
    "the difference (Newcombe 1998, method 10) holds 0. Each is a test of its own, of samples taken as "
    "independent; the tasks of one session are not, so that the interval of the task accuracy is too narrow.",
)
PLAY_OPTIONS = {
    "language": ("--language", "en"),
    "history": ("--history", "gold"),
    "on_mismatch": ("--on-mismatch", None),
    "max_steps": ("--max-steps", 20),
    "observations": ("--observations", "matched"),
}
"""What a baseline must share with the Run that it is for: by key of the configuration, the option and
its default."""


def leaderboard_table(board: Leaderboard, run: RunFigures | None = None) -> str:
    """The published models by session accuracy, with the Run in its place if there is one.

    Equal session accuracies share a rank; among them the better task accuracy stands first.
    """
    notes = [*BANNER, *(RUN_NOTES if run else ())]
    return "\n".join(
        [
            "Published figures (session and task accuracy, with 95 % Wilson intervals)",
            *_wrapped(notes),
            "",
            *_aligned(list(_ranking(board, run))),
            *_unranked(board),
            "",
            "What others got with the released code as scorer",
            *_aligned(list(_reproductions(board))),
            "",
            "What does not fit together in the published figures",
            *_wrapped([f"{_shown(it.id)}: {visible(it.text)}" for it in board.inconsistencies]),
            "",
        ]
    )


def how_to_baseline(config: Mapping[str, Any], *, model: str | None = None, log: str | None = None) -> str:
    """How to set a bare model beside a Run: the two commands, with what is known of the Run filled in.

    `config` is the Run's, as its log has it; `model` the one that its log names, for a Run whose
    configuration leaves that to the agent; `log` the path of that log.
    """
    drive = [
        "wildproxy drive --agent builtin",
        *(f"--scenarios {_quoted(name)}" for name in _scenario_files(config)),
        f"--provider {_quoted(str(config.get('provider') or 'URL'))}",
        f"--model {_quoted(_model(config, model))}",
        *_play_options(config),
        "--log baseline.db",
    ]
    return "\n".join(
        [
            *_wrapped(
                [
                    "A figure says what an agent adds only beside that of its bare model, in the same "
                    "scenarios and under the same rules. Play that as a baseline (the key, and --only, "
                    "--limit and --epochs, as for this run), then compare the two, session by session:"
                ]
            ),
            "",
            f"  {' '.join(drive)}",
            f"  wildproxy score {_quoted(log or 'LOG')} --leaderboard --baseline baseline.db",
            "",
        ]
    )


def _ranking(board: Leaderboard, run: RunFigures | None) -> Iterator[Row]:
    yield ("", "rank", "model", "session", "", "k/n", "95 %", "task", "", "k/n", "95 %")
    rows = [
        (row.session, row.task, _shown(row.model), False) for row in board.models if row.session and row.task
    ]
    if run is not None:
        rows.append((run.session, run.task, _shown(run.name), True))
    rates = [session.value or 0.0 for session, *_ in rows]
    rows.sort(key=lambda row: (-(row[0].value or 0.0), -(row[1].value or 0.0), not row[3], row[2]))
    for session, task, name, is_run in rows:
        rank = 1 + sum(rate > (session.value or 0.0) for rate in rates)
        yield (
            RUN_MARK if is_run else "",
            str(rank),
            name,
            *_cells(session, None if is_run or run is None else run.session),
            *_cells(task, None if is_run or run is None else run.task),
        )


def _cells(figure: Figure, beside: Figure | None) -> Row:
    """The rate, the mark that it does not differ from the one beside it, the counts, the interval."""
    mark = SAME_MARK if beside is not None and not differs(figure, beside) else ""
    bounds = "-" if figure.low is None or figure.high is None else _percent(figure.low, figure.high)
    return _percent(figure.value), mark, f"{figure.successes}/{figure.n}", bounds


def _unranked(board: Leaderboard) -> Iterator[str]:
    names = [_shown(row.model) for row in board.models if row.session is None or row.task is None]
    if names:
        yield from _wrapped([f"Without session accuracy, so without a rank: {', '.join(names)}."])


def _reproductions(board: Leaderboard) -> Iterator[Row]:
    yield ("model", "session", "task", "published", "by", "with")
    published = {row.model: (row.session, row.task) for row in board.models}
    for it in board.reproductions:
        if it.released_scorer:
            session, task = published.get(it.model, (None, None))
            beside = f"{_percent(session.value)}, {_percent(task.value)}" if session and task else "-"
            rates = _percent(it.session), _percent(it.task)
            yield (_shown(it.model), *rates, beside, visible(it.who), _circumstances(it))


def _circumstances(it: Reproduction) -> str:
    return visible(it.stack if it.note is None else f"{it.stack}; {it.note}")


def _scenario_files(config: Mapping[str, Any]) -> Iterator[str]:
    """The names that were given; the bundled file, known by its content, has a word of its own."""
    files = config.get("scenarios") or ()
    if not files:
        yield "FILE"
    for file in files:
        is_bundled = (
            file["file"] == BUNDLED.name and file["sha256"] == sha256(BUNDLED.read_bytes()).hexdigest()
        )
        yield BUNDLED_WORD if is_bundled else file["file"]


def _model(config: Mapping[str, Any], asked: str | None) -> str:
    """The model of the Run; a word to be replaced where it has none, or several, joined by a comma."""
    known = str(config.get("model") or asked or "")
    return "MODEL" if not known or ", " in known else known


def _play_options(config: Mapping[str, Any]) -> Iterator[str]:
    """What decides how a Session is played, where it is not the default.

    Who runs the tools is left out: every mode serves the same Observations, and the builtin agent has none.
    """
    usual_mismatch = "continue" if config.get("history") == "live" else "stop"
    for key, (option, default) in PLAY_OPTIONS.items():
        usual = usual_mismatch if key == "on_mismatch" else default
        if (value := config.get(key)) is not None and value != usual:
            yield f"{option} {_quoted(str(value))}"


def _quoted(text: str) -> str:
    return shlex.quote(visible(text))


def _shown(text: str) -> str:
    return clip(visible(text), NAME_LENGTH)


def _percent(*values: float | None) -> str:
    """Fractions as per cent with one decimal, joined by a dash."""
    return "-".join("-" if value is None else f"{100 * value:.1f}" for value in values)


def _wrapped(texts: Sequence[str]) -> list[str]:
    return [
        line
        for text in texts
        for line in textwrap.wrap(text, COLUMNS, break_long_words=False, break_on_hyphens=False)
    ]


NUMBERS = frozenset({"rank", "session", "task", "k/n", "95 %"})


def _aligned(rows: Sequence[Row]) -> list[str]:
    """The rows as lines, the first as the head: numbers to the right, the rest to the left."""
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = []
        for head, cell, room in zip(rows[0], row, widths, strict=True):
            blank = " " * (room - width(cell))
            cells.append(blank + cell if head in NUMBERS else cell + blank)
        lines.append(GAP.join(cells).rstrip())
    return lines
