"""The command `judge`: what the scorers say of replies and conversations recorded elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from scenarios.text import visible
from scoring.completing_cli import complete_scenarios
from scoring.errors_cli import InputError, NothingScorable
from scoring.options_cli import DEFAULT_SCORERS, SCORER_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from scenarios.types import Scenario


@click.command(
    epilog="""\b
    Examples:
      wildproxy judge cases.jsonl
      wildproxy export run.db --format openai | wildproxy judge -
    """
)
@click.argument("cases", metavar="CASES.jsonl", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--scorer",
    "scorers",
    type=click.Choice(SCORER_NAMES),
    multiple=True,
    help="Once for each scorer. Default: wildtoolbench and strict.",
)
@click.option(
    "--scenarios",
    "files",
    multiple=True,
    metavar="FILE",
    shell_complete=complete_scenarios,
    help="Where the scenarios of conversations are; may be given several times. Default: bundled.",
)
@click.option(
    "--language",
    type=click.Choice(["en", "zh"]),
    default="en",
    show_default=True,
    help="Which columns of --scenarios to read where a file has both.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, allow_dash=True),
    default="-",
    help="Write the verdicts here instead of to standard output.",
)
def judge(cases: Path, scorers: tuple[str, ...], files: tuple[str, ...], language: str, output: Path) -> None:
    """Score recorded replies without a proxy: a verdict for each line of CASES.jsonl ('-': standard input).

    A line holds one task: `tools`, `answer_list` (the reference), `replies` (assistant messages in
    order) and, if wanted, `annotations`. Or it holds a conversation: `scenario` (an id), `messages`
    (OpenAI chat form, as `export --format openai` writes them) and, if they are of one task alone,
    `task` (its number). `case` names a line in the output.

    Blank lines are skipped. A line that cannot be judged gives a line with `error`, and exit code 2 at
    the end.
    """
    _refuse_overwriting(cases, output)
    names = tuple(dict.fromkeys(scorers)) or DEFAULT_SCORERS
    scenarios = _scenarios(files, language)
    try:
        with click.open_file(str(cases), "rb") as source, click.open_file(str(output), "wb") as target:
            judged, broken = _judge_stream(source, target, names, scenarios)
    except OSError as error:
        if error.filename is None:
            raise
        raise InputError(visible(f"{error.filename}: {error.strerror}")) from error
    source_name = "standard input" if str(cases) == "-" else visible(str(cases))
    if broken:
        raise InputError(f"{source_name}: {broken} of {judged} lines could not be judged; see their 'error'")
    if not judged:
        raise NothingScorable(f"{source_name}: no cases")


def _scenarios(files: Iterable[str], language: str) -> dict[str, Scenario]:
    from scenarios.load import BUNDLED_WORD, ScenarioError, load

    try:
        loaded = load(dict.fromkeys(files or (BUNDLED_WORD,)), language)
    except ScenarioError as error:
        raise InputError(visible(str(error))) from error
    return {scenario.id: scenario for file in loaded for scenario in file.scenarios}


def _judge_stream(
    source: IO[bytes], target: IO[bytes], scorers: tuple[str, ...], scenarios: Mapping[str, Scenario]
) -> tuple[int, int]:
    """Judges line by line, each verdict flushed at once; returns (lines, broken lines)."""
    from scoring.judge import judge_lines
    from scoring.output.json_text import json_bytes

    total = broken = 0
    for entry in judge_lines(source, scorers, scenarios):
        target.write(json_bytes(entry))
        target.flush()
        total += 1
        broken += "error" in entry
    return total, broken


def _refuse_overwriting(source: Path, target: Path) -> None:
    if str(source) != "-" and source.exists() and target.exists() and source.samefile(target):
        raise InputError(f"{target}: the output would overwrite the cases; name another file with -o")
