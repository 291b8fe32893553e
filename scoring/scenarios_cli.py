"""The commands `scenarios list`, `show`, `validate`, `new` and `schema`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from scoring.completing_cli import complete_ids, complete_scenarios
from scoring.errors_cli import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scenarios.load import ScenarioFile
    from scenarios.types import Scenario
    from scenarios.validate import Judge
    from scoring.scenarios_text import Located

LEVELS = ("error", "warning", "note")

language_option = click.option(
    "--language",
    type=click.Choice(["en", "zh"]),
    default="en",
    show_default=True,
    help="Which columns to read where a file has both: english_* or the Chinese originals.",
)


@click.group(
    epilog="""\b
    Examples:
      wildproxy scenarios list
      wildproxy scenarios show bundled home_6
    """
)
def scenarios() -> None:
    """List, print, check and begin scenario files.

    FILE has one session, a JSON object, on each line, or is one JSON document. The name of a pack that
    comes with this program will do as well: bundled, everyday, ledger, zh. 'scenarios list' lists them.
    """


@scenarios.command(
    "list",
    short_help="The packs, or the sessions of files.",
    epilog="""\b
    Examples:
      wildproxy scenarios list             # the packs
      wildproxy scenarios list ledger
    """,
)
@click.argument("files", nargs=-1, metavar="[FILE...]", shell_complete=complete_scenarios)
@language_option
@click.option(
    "--format", "output_format", type=click.Choice(["table", "json"]), default="table", show_default=True
)
def list_command(files: tuple[str, ...], language: str, output_format: str) -> None:
    """List the sessions of each FILE, and how they are balanced; without FILE the packs.

    Of a session: id, sizes, task labels, turn subtypes, hash. The balance counts tasks by label, turn
    subtype and position, the shapes of their References, parallel calls, calls with side effects and
    languages.
    """
    from scenarios.packs import packs
    from scoring.scenarios_text import json_text, list_document, list_text, packs_document, packs_text

    if not files:
        held = [(name, sound_file(name, language)) for name in packs()]
        click.echo(json_text(packs_document(held)) if output_format == "json" else packs_text(held))
        return
    sound = [(name, sound_file(name, language)) for name in files]
    if output_format == "json":
        click.echo(json_text(list_document(sound)))
    else:
        click.echo("\n\n".join(list_text(name, file) for name, file in sound))


@scenarios.command(
    short_help="Print one session.",
    epilog="""\b
    Examples:
      wildproxy scenarios show bundled
      wildproxy scenarios show bundled home_6 --task 2
    """,
)
@click.argument("file", metavar="FILE", shell_complete=complete_scenarios)
@click.argument("session", metavar="[ID]", required=False, shell_complete=complete_ids)
@click.option("--task", type=click.IntRange(min=1), metavar="N", help="Print only task N (from 1).")
@click.option("--full", is_flag=True, help="Do not shorten observations and gold texts.")
@language_option
@click.option(
    "--format", "output_format", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def show(
    file: str, session: str | None, task: int | None, full: bool, language: str, output_format: str
) -> None:
    """Print one session of FILE: its date, tools, tasks and References (the first session without ID).

    A Reference is shown as steps along its first shortest path.
    """
    from scoring.scenarios_text import json_text, session_document, session_text

    sound = sound_file(file, language)
    chosen = _choose(file, sound, session)
    if task is not None and task > len(chosen.tasks):
        raise InputError(f"{chosen.id} has {len(chosen.tasks)} tasks; there is no task {task}")
    if output_format == "json":
        click.echo(json_text(session_document(chosen, task)))
    else:
        click.echo(session_text(chosen, task, full=full))
    if session is None and len(sound.scenarios) > 1:
        others = _ids(sound.scenarios[1:])
        click.echo(f"(the first of {len(sound.scenarios)} sessions; others: {others})", err=True)


@scenarios.command(
    short_help="Check files, one line a finding.",
    epilog="""\b
    Examples:
      wildproxy scenarios validate my.json
      wildproxy scenarios validate my.json --level warning
    """,
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", shell_complete=complete_scenarios)
@language_option
@click.option(
    "--level",
    type=click.Choice(LEVELS),
    default="note",
    show_default=True,
    help="Leave out what is less grave than this.",
)
@click.option(
    "--format", "output_format", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def validate(files: tuple[str, ...], language: str, level: str, output_format: str) -> None:
    """Check each FILE and print every finding, one per line. Exit code 2 if there are errors.

    Errors: a record that cannot be played; a Reference that one of the scorers does not mark
    correct, or still marks correct with a call dropped, a call added, an unknown tool, text instead
    of a call or a required key missing; an alternative that its tool would refuse. Warnings: an ask
    or closing node that is not alone in its step, and the like. Notes: defaults given only in words,
    labels that do not fit the Reference, calls that cannot be told apart.
    """
    from scoring.scenarios_text import finding_text, findings_document, json_text, summary_text

    read = [(name, _readable_file(name, language)) for name in files]
    located = list(_findings(read))
    shown = [entry for entry in located if LEVELS.index(entry[2].level) <= LEVELS.index(level)]
    counts = Counter[str](finding.level for _, _, finding in located)
    if output_format == "json":
        click.echo(json_text(findings_document(read, shown, counts)))
    else:
        for entry in shown:
            click.echo(finding_text(entry))
        sessions = sum(len(file.scenarios) for _, file in read)
        if sessions or len(located) > 1:
            click.echo(summary_text(len(read), sessions, counts))
    if counts["error"]:
        click.get_current_context().exit(InputError.exit_code)


@scenarios.command(
    short_help="Write a scenario file to begin with.",
    epilog="""\b
    Examples:
      wildproxy scenarios new my.json
    """,
)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["json", "jsonl"]),
    help="json: laid out over many lines. jsonl: the session on one line. Default: by the name of FILE.",
)
def new(file: Path, output_format: str | None) -> None:
    """Write a scenario file to begin with: one session with comments, which can be played as it stands.

    A file that is there already is left alone.
    """
    from scoring.scenario_template import next_commands, template

    lines = output_format == "jsonl" or (output_format is None and file.suffix.lower() == ".jsonl")
    try:
        with file.open("x", encoding="utf-8", newline="\n") as created:
            created.write(template(file.stem, one_line=lines))
    except FileExistsError:
        raise InputError(f"{file} is there already and was left alone; choose another name") from None
    except FileNotFoundError:
        raise InputError(f"{file}: there is no folder {file.parent}; make it first") from None
    except OSError as error:
        raise InputError(f"{file}: cannot be written: {error.strerror}") from None
    for line in next_commands(file):
        click.echo(line)


@scenarios.command(
    short_help="The JSON Schema of scenario files.",
    epilog="""\b
    Examples:
      wildproxy scenarios schema > scenario.schema.json
    """,
)
def schema() -> None:
    """Print the JSON Schema of scenario files, for editors that complete and check by it."""
    from scenarios.record_schema import record_schema
    from scoring.scenarios_text import json_text

    click.echo(json_text(record_schema()))


def _readable_file(name: str, language: str) -> ScenarioFile:
    """The file with its errors; raises InputError if it cannot be read at all."""
    from scenarios.load import read_file
    from scenarios.text import visible

    file = read_file(name, language)
    if not file.sha256:
        raise InputError(visible(str(file.errors[0])))
    return file


def sound_file(name: str, language: str) -> ScenarioFile:
    """The file, if every record in it can be played; else InputError for the first that cannot."""
    from scenarios.text import visible

    file = _readable_file(name, language)
    if file.errors:
        more = len(file.errors) - 1
        rest = f" (and {more} more; 'scenarios validate' lists them)" if more else ""
        raise InputError(visible(str(file.errors[0])) + rest)
    return file


def _choose(name: str, file: ScenarioFile, session: str | None) -> Scenario:
    from scenarios.nearest import aside
    from scenarios.text import visible

    if session is None:
        return file.scenarios[0]
    for scenario in file.scenarios:
        if scenario.id == session:
            return scenario
    meant = aside(session, [scenario.id for scenario in file.scenarios])
    raise InputError(
        f"{visible(name)} has no session {visible(session)}{meant}; it has {_ids(file.scenarios)}"
    )


def _ids(sessions: Sequence[Scenario]) -> str:
    shown = ", ".join(scenario.id for scenario in sessions[:20])
    return shown if len(sessions) <= 20 else f"{shown}, ... ({len(sessions)})"


def _findings(files: Sequence[tuple[str, ScenarioFile]]) -> Iterator[Located]:
    """File by file and line by line: what cannot be played, and what validation says of the rest."""
    from scenarios.validate import Finding
    from scenarios.validate import validate as check

    homes: dict[str, str] = {}
    for name, file in files:
        found: list[Located] = [
            (name, error.line, Finding("error", "", None, error.field, error.reason)) for error in file.errors
        ]
        for scenario, line in zip(file.scenarios, file.lines, strict=True):
            if scenario.id in homes:
                reason = (
                    f"{scenario.id} is a session of {homes[scenario.id]} too; play one of the two at a time"
                )
                found.append((name, line, Finding("warning", scenario.id, None, "id", reason)))
            found += [(name, line, finding) for finding in check(scenario, judges_of(scenario))]
        homes.update({scenario.id: name for scenario in file.scenarios})
        yield from sorted(found, key=lambda entry: entry[1])


def judges_of(scenario: Scenario) -> dict[str, Judge]:
    """The scorers under which the References must be right, by name."""
    from scoring.verdicts.references import judges

    return judges(scenario)
