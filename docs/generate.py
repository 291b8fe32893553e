"""Writes the pages that follow from the code: `cli.md` from the commands, `schema.md` from a log,
`frameworks.md` and `agents.md` from the files by which real clients are tested, `conformance.md` from the
probes, `metrics.md` from the definitions of figures, `control-api.md` and `openapi.json` from the description
of the control API; the README's table of the probes; and `schema.sql`, from the steps that make a log.

    python docs/generate.py            writes them all
    python docs/generate.py --check    writes nothing; exit code 1 if a page differs

What is written depends on the code alone, not on the terminal or on click's layout of help texts.
"""

from __future__ import annotations

import inspect
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from textwrap import dedent

import click

DOCS = Path(__file__).resolve().parent
# The commands and the schema beside this file, whatever else is installed.
sys.path[:0] = [str(DOCS.parent), str(DOCS)]

from client_pages import agents_page, frameworks_page  # noqa: E402
from conformance_page import conformance_page, summary  # noqa: E402
from control_api_page import control_api_page, openapi_json  # noqa: E402
from metrics_page import metrics_page  # noqa: E402
from scenario_schema_page import scenario_schema_page  # noqa: E402

from proxy.command_line.help import examples  # noqa: E402
from proxy.log import rows  # noqa: E402
from proxy.log.migrations import SCHEMA, migrate  # noqa: E402
from run_proxy import main  # noqa: E402

README = DOCS.parent / "README.md"
PROGRAM = "wildproxy"
NOTICE = "<!-- Written by docs/generate.py: change the code, then run it. -->"
SQL_NOTICE = "Written by docs/generate.py: add a migration, then run it."

TABLES: Mapping[str, type | str] = {
    "meta": "What the file is: `application`, `schema_version`, `created_at`, `started_at` of the proxy that "
    "wrote last, `seq`, the last one given, and `answer_dictionary` (see `exchanges`).",
    "runs": rows.RunRow,
    "scenarios": rows.ScenarioRow,
    "sessions": rows.SessionRow,
    "planned": rows.PlannedRow,
    "turns": rows.TurnRow,
    "tasks": rows.TaskEndRow,
    "exchanges": (
        "One HTTP request and its answer. An agent exchange (`side` = `agent`) owns the provider "
        "exchanges that name it as `parent_id`. `findings`, on a provider exchange, is a JSON array of "
        "{turn, what, detail}: what this request lacked of the agent's own history, or had otherwise. `raw` "
        "is read by `zlib.decompressobj(zdict=dictionary.encode()).decompress(raw)`, where the dictionary is "
        "`answer_dictionary` of `meta` and then the `body` of the `output_message`, if there is one; or by "
        "`wildproxy log show LOG ID --raw`."
    ),
    "messages": "Every chat message once, by the hash of its JSON text.",
    "chains": (
        "Histories. A link is a message after a parent link; an exchange holds its last link as `tip`, "
        "so a history that is sent again costs one link for each new message."
    ),
    "tool_lists": "Every `tools` array once, by the hash of its JSON text.",
    "steps": rows.StepRow,
    "handovers": rows.HandoverRow,
    "tool_calls": rows.ToolCallRow,
}
"""What each table holds: in the words of the row that is written there, where there is one."""

EXAMPLES: tuple[tuple[str, str], ...] = (
    (
        "Which tool calls did a session make, with which arguments, in which order, and what were they told?",
        """
        select task, step, name, arguments, observation
        from tool_call_log where session = 'ledger_1.e1' order by task, step, position
        """,
    ),
    (
        "Which tool calls did the LLM make, also where nothing was played and all was only recorded?",
        """
        select exchanges.arrival, exchanges.key_hash as agent,
          json_extract(call.value, '$.function.name') as name,
          json_extract(call.value, '$.function.arguments') as arguments
        from exchanges join messages on messages.hash = exchanges.output_message,
          json_each(messages.body, '$.tool_calls') as call
        where exchanges.side = 'provider' or exchanges.session_id is null
        order by exchanges.arrival, call.key
        """,
    ),
    (
        "Where was a wrong step taken, and what would have been allowed?",
        """
        select sessions.name as session, steps.task + 1 as task, steps.step + 1 as step, steps.reason
        from steps join sessions on sessions.id = steps.session_id
        where steps.decision = 'stop' order by sessions.name, steps.task
        """,
    ),
    (
        "Which calls were wrong or made again, where that does not end a task, and what were they told?",
        """
        select session, task, step, name, arguments, outcome, observation
        from tool_call_log where outcome != 'served' order by session, task, step, position
        """,
    ),
    (
        "What did an agent lose or change of its own history, and how many requests lacked it?",
        """
        select sessions.name as session, json_extract(finding.value, '$.turn') as of_turn,
          json_extract(finding.value, '$.what') as what, json_extract(finding.value, '$.detail') as detail,
          min(exchanges.arrival) as first_found, count(*) as requests
        from exchanges join sessions on sessions.id = exchanges.session_id,
          json_each(exchanges.findings) as finding
        group by sessions.id, of_turn, what order by session, of_turn, first_found
        """,
    ),
    (
        "What did a session cost?",
        """
        select sessions.name as session, count(*) as requests,
          sum(exchanges.input_tokens) as input_tokens, sum(exchanges.output_tokens) as output_tokens
        from exchanges join sessions on sessions.id = exchanges.session_id
        where exchanges.side = 'provider' group by sessions.name order by sessions.name
        """,
    ),
    (
        "Which messages did the LLM get in the last request of a session?",
        """
        with recursive history as (
          select chains.* from chains join exchanges on exchanges.tip = chains.hash
          where exchanges.id = (
            select exchanges.id from exchanges join sessions on sessions.id = exchanges.session_id
            where sessions.name = 'ledger_1.e1' and exchanges.side = 'provider'
            order by exchanges.arrival desc limit 1
          )
          union all
          select chains.* from chains join history on chains.hash = history.parent
        )
        select history.position, json_extract(messages.body, '$.role') as role, messages.body
        from history join messages on messages.hash = history.message order by history.position
        """,
    ),
    (
        "What did the proxy change in an agent's requests?",
        """
        select distinct change.value as changed, count(*) as requests
        from exchanges, json_each(exchanges.changes) as change
        where exchanges.side = 'provider' group by change.value order by change.value
        """,
    ),
    (
        "Which exchanges did a session make? (`wildproxy log show LOG.db ID` prints one whole.)",
        """
        select exchanges.id, side, turn, status, finish_state, request_model
        from exchanges join sessions on sessions.id = exchanges.session_id
        where sessions.name = 'ledger_1.e1' order by exchanges.arrival
        """,
    ),
    (
        "What failed?",
        """
        select finish_state, error_type, status, count(*) as exchanges
        from exchanges where finish_state not in ('complete', 'pending')
        group by finish_state, error_type, status order by exchanges desc
        """,
    ),
)
"""Questions and the SQL that answers them. The tests run each on a log."""


def cli_page() -> str:
    """The command reference, from the click commands themselves."""
    lines = [
        "# Commands",
        "",
        NOTICE,
        "",
        f"`{PROGRAM} COMMAND` and `python run_proxy.py COMMAND` are the same. Every option can also be set "
        "in the environment or in a file: [configuration](configuration.md).",
        "",
        "| Exit code | means |",
        "|---|---|",
        "| 0 | done, and every threshold met |",
        "| 1 | a threshold missed, or the candidate is worse |",
        "| 2 | wrong usage or broken input; one line says what is wrong, where, and how to mend it |",
        "| 3 | nothing to score, or something other than the agent failed |",
        "| 4 | inconclusive: the data cannot tell |",
        "| 130, 143, 129 | ended by Ctrl-C, SIGTERM, SIGHUP |",
    ]
    for context in _contexts(click.Context(main, info_name=PROGRAM)):
        lines += ["", *_command(context)]
    return "\n".join(lines) + "\n"


def schema_page() -> str:
    """The log's tables."""
    with _migrated() as connection:
        return "\n".join(_schema(connection)) + "\n"


def schema_sql() -> str:
    """What makes a new log at once."""
    with _migrated() as connection:
        found = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid")
        return f"-- {SQL_NOTICE}\n\n" + "\n\n".join(f"{sql.strip()};" for (sql,) in found) + "\n"


@contextmanager
def _migrated() -> Iterator[sqlite3.Connection]:
    """A log that has just been made, step by step."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection, lambda: 0.0)
        yield connection


PAGES: Mapping[str, Callable[[], str]] = {
    "cli.md": cli_page,
    "schema.md": schema_page,
    "frameworks.md": lambda: frameworks_page(NOTICE),
    "agents.md": lambda: agents_page(NOTICE),
    "conformance.md": lambda: conformance_page(NOTICE),
    "metrics.md": lambda: metrics_page(NOTICE),
    "scenario-schema.md": lambda: scenario_schema_page(NOTICE),
    "control-api.md": lambda: control_api_page(NOTICE),
    "openapi.json": openapi_json,
}


def _contexts(context: click.Context) -> Iterator[click.Context]:
    """The command of `context` and all below it, in the order of the help text."""
    yield context
    group = context.command
    if isinstance(group, click.Group):
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if command is not None:
                yield from _contexts(click.Context(command, info_name=name, parent=context))


def _command(context: click.Context) -> Iterator[str]:
    command = context.command
    arguments = [_argument(it) for it in command.params if isinstance(it, click.Argument)]
    rest = ["COMMAND"] if isinstance(command, click.Group) else arguments
    yield f"## {context.command_path.split(' ', 1)[-1] if context.parent else PROGRAM}"
    yield from ("", "```", " ".join([context.command_path.split(" [")[0], "[OPTIONS]", *rest]), "```", "")
    yield _prose(command.help or "")
    if shown := examples(command):
        yield from ("", "```sh", *shown, "```")
    options = [it for it in command.params if isinstance(it, click.Option) and not it.hidden]
    if options:
        yield ""
        yield from (_option(it) for it in options)


def _argument(argument: click.Argument) -> str:
    name = argument.metavar or (argument.name or "").upper()
    many = "..." if argument.nargs == -1 and not name.rstrip("]").endswith("...") else ""
    return f"{name}{many}" if argument.required or name.startswith("[") else f"[{name}{many}]"


def _option(option: click.Option) -> str:
    names = ", ".join(option.opts)
    if option.secondary_opts:
        names += " / " + ", ".join(option.secondary_opts)
    value = "" if option.is_flag else f" {_value(option)}"
    notes = ["Required."] if option.required else []
    help_text = _sentence(option.help or "")
    if option.multiple and not re.search("several times|repeated", help_text):
        notes.append("May be repeated.")
    if option.show_default and (default := _default(option)):
        notes.append(f"Default: `{default}`.")
    said = [text for text in (help_text, *notes) if text]
    return f"- `{names}{value}`" + (f": {' '.join(said)}" if said else "")


def _value(option: click.Option) -> str:
    if option.metavar:
        return option.metavar
    if isinstance(option.type, click.Choice):
        return "|".join(map(str, option.type.choices))
    return "N" if isinstance(option.type, click.IntRange | click.FloatRange) else option.type.name.upper()


def _default(option: click.Option) -> str:
    default = option.default
    if option.secondary_opts:
        return (option.opts if default else option.secondary_opts)[0]
    if isinstance(default, tuple | list):
        return ", ".join(map(str, default))
    return str(default) if isinstance(default, str | int | float | Path) and default != "" else ""


def _sentence(text: str) -> str:
    text = re.sub(r"\s*\[default: (.*)\]$", r" Default: \1.", " ".join(text.split()))
    return text if not text or text.endswith((".", ":", ")")) else f"{text}."


def _prose(text: str) -> str:
    """A help text's paragraphs, each on one line; what looks like a placeholder is set as code."""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(text))
    joined = [" ".join(paragraph.split()) for paragraph in paragraphs]
    return "\n\n".join(
        re.sub(r"(\[\[[^]]+\]\]|https?://\S*[^\s.,;])", r"`\1`", paragraph) for paragraph in joined
    )


def _schema(connection: sqlite3.Connection) -> Iterator[str]:
    version = connection.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()[0]
    yield from ("# The log", "", NOTICE, "")
    yield (
        f"A log is one SQLite file, schema version {version}. Times are Unix seconds. Rows count tasks, "
        "steps, call positions and nodes from 0; the view counts from 1; turns are numbered as their "
        "sentinel says. `seq` grows with every write, over all tables. Columns that hold JSON hold it as "
        "text, for SQLite's own JSON functions. No keys, tokens or cookies are in it."
    )
    yield from ("", "Open it with anything that reads SQLite, also while the proxy writes:", "")
    yield "<!-- not run: datasette is not installed with the package -->"
    yield from ("```sh", "sqlite-utils tables LOG.db --counts", "datasette LOG.db", "```", "")
    yield "`sqlite-utils` comes with this package; `datasette` does not."
    yield from ("", "## Questions")
    for question, sql in EXAMPLES:
        yield from ("", question, "", "```sql", dedent(sql).strip(), "```")
    yield from ("", "## Tables")
    names = _names(connection, "table")
    if unknown := set(names) ^ set(TABLES):
        raise SystemExit(f"docs/generate.py: TABLES and the schema differ in {', '.join(sorted(unknown))}")
    for name in TABLES:
        yield from ("", *_table(connection, name))
    yield from ("", "## Views")
    for name in _names(connection, "view"):
        yield from ("", *_view(connection, name))


def _names(connection: sqlite3.Connection, kind: str) -> list[str]:
    found = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = ? AND name NOT LIKE 'sqlite_%' ORDER BY rowid", (kind,)
    )
    return [name for (name,) in found]


def _table(connection: sqlite3.Connection, name: str) -> Iterator[str]:
    said = TABLES[name]
    yield from (f"### {name}", "", said if isinstance(said, str) else _prose(inspect.getdoc(said) or ""), "")
    (sql,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (name,)).fetchone()
    comments = _comments(sql)
    references = {
        row[3]: f"-> `{row[2]}`"
        for row in connection.execute(f"PRAGMA foreign_key_list({name})")
        if row[1] == 0
    }
    yield from ("| column | type | what it holds |", "|---|---|---|")
    for _, column, kind, not_null, _, key in connection.execute(f"PRAGMA table_info({name})"):
        words = ["key"] if key else ["may be null"] if not not_null else []
        words += [text for text in (references.get(column), comments.get(column)) if text]
        yield f"| {column} | {kind.lower() or 'any'} | {'; '.join(words).replace('|', 'or')} |"


def _comments(sql: str) -> dict[str, str]:
    """What the `--` comments of a CREATE TABLE say of its columns."""
    return dict(re.findall(r"^\s*(\w+) [^\n]*?--\s*(\S[^\n]*?)\s*$", sql, flags=re.MULTILINE))


def _view(connection: sqlite3.Connection, name: str) -> Iterator[str]:
    (sql,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (name,)).fetchone()
    # How the name before it is quoted depends on the version of sqlite-utils.
    query = sql[sql.upper().index("SELECT") :].strip()
    yield from (f"### {name}", "", "```sql", query, "```")


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; exit code 1 if a page differs.")
def generate(check: bool) -> None:
    """Write the pages that follow from the code."""
    pages = {DOCS / name: page() for name, page in PAGES.items()}
    pages |= {README: readme(), SCHEMA: schema_sql()}
    stale = [path for path, text in pages.items() if _read(path) != text]
    for path in stale:
        name = path.relative_to(DOCS.parent).as_posix()
        if check:
            click.echo(f"{name} is not what the code says: run python docs/generate.py", err=True)
        else:
            path.write_text(pages[path], encoding="utf-8", newline="\n")
            click.echo(f"wrote {name}")
    if check and stale:
        raise SystemExit(1)


def readme() -> str:
    """The README with the table of what passes on the wire."""
    text = _read(README)
    before, mark, after = text.partition("<!-- table: conformance -->\n")
    return (
        f"{before}{mark}{chr(10).join(summary())}\n{after[after.index(chr(10) * 2) + 1 :]}" if mark else text
    )


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    generate()
