"""What each step of the log's schema does. Once released, a step is never changed: see `migrations`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.log.answers import DICTIONARY

if TYPE_CHECKING:
    from sqlite_utils import Database

_TABLES = (
    """CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    created_at REAL NOT NULL,
    config TEXT NOT NULL,       -- JSON object, no secrets
    config_hash TEXT NOT NULL,
    versions TEXT NOT NULL      -- JSON object: program -> version
)""",
    """CREATE TABLE scenarios (
    hash TEXT PRIMARY KEY,
    id TEXT NOT NULL,
    record TEXT NOT NULL,       -- JSON object: the scenario in plain keys
    source TEXT NOT NULL,
    source_sha256 TEXT NOT NULL
)""",
    """CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    run_id TEXT NOT NULL REFERENCES runs(id) ON UPDATE CASCADE ON DELETE CASCADE,
    name TEXT NOT NULL,         -- what URLs use
    scenario_id TEXT NOT NULL,
    scenario_hash TEXT NOT NULL REFERENCES scenarios(hash),
    epoch INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    opened_at REAL NOT NULL,
    UNIQUE (run_id, scenario_id, epoch, attempt)
)""",
    """CREATE TABLE turns (
    session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
    turn INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    task INTEGER NOT NULL,      -- from 0
    kind TEXT NOT NULL,         -- task | reply
    text TEXT NOT NULL,
    opened_at REAL NOT NULL,
    said TEXT,                  -- JSON: the agent's user message with these words in it
    PRIMARY KEY (session_id, turn)
)""",
    """CREATE TABLE tasks (
    session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
    task INTEGER NOT NULL,      -- from 0
    seq INTEGER NOT NULL,
    ending TEXT NOT NULL,       -- closed | stopped | agent_stopped | infrastructure
    ended_at REAL NOT NULL,
    PRIMARY KEY (session_id, task)
)""",
    """CREATE TABLE messages (
    hash TEXT PRIMARY KEY,
    body TEXT NOT NULL          -- JSON: one chat message
)""",
    """CREATE TABLE chains (
    hash TEXT PRIMARY KEY,      -- names the history that ends here
    parent TEXT REFERENCES chains(hash),
    message TEXT NOT NULL REFERENCES messages(hash),
    position INTEGER NOT NULL   -- from 0
)""",
    """CREATE TABLE tool_lists (
    hash TEXT PRIMARY KEY,
    body TEXT NOT NULL          -- JSON: the `tools` array of a request
)""",
    """CREATE TABLE exchanges (
    id TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,       -- of the last write
    arrival INTEGER NOT NULL,   -- seq of the first write: the order in which they began
    side TEXT NOT NULL,         -- agent | provider
    parent_id TEXT REFERENCES exchanges(id) ON DELETE CASCADE,
    run_id TEXT REFERENCES runs(id) ON UPDATE CASCADE ON DELETE CASCADE,
    session_id TEXT REFERENCES sessions(id) ON DELETE CASCADE,
    turn INTEGER,
    correlation TEXT,           -- how the session was found
    reason TEXT,                -- why it is a side call; null on the main thread
    method TEXT NOT NULL,
    path TEXT NOT NULL,
    started_at REAL NOT NULL,
    finished_at REAL,
    delivered_at REAL,          -- when the terminal event was written to the agent
    finish_state TEXT NOT NULL, -- pending until finished
    status INTEGER,
    stream INTEGER NOT NULL,
    time_to_first_chunk REAL,   -- seconds
    request_model TEXT,
    response_model TEXT,
    response_id TEXT,
    finish_reasons TEXT,        -- JSON array
    input_tokens INTEGER,
    output_tokens INTEGER,
    error_type TEXT,
    error TEXT,
    key_hash TEXT,              -- tells two keys apart
    request_sha256 TEXT NOT NULL,
    request_headers TEXT NOT NULL,  -- JSON object, allow-listed
    response_headers TEXT,          -- JSON object, allow-listed
    message_count INTEGER,      -- null if the request had no messages
    tip TEXT REFERENCES chains(hash),           -- the request's messages
    tools TEXT REFERENCES tool_lists(hash),     -- the request's tools
    body TEXT,                  -- JSON: the request without messages and tools
    changes TEXT NOT NULL,      -- JSON array: what the proxy changed
    output_message TEXT REFERENCES messages(hash),
    raw BLOB                    -- the answer's bytes as received, zlib
)""",
    """CREATE TABLE steps (
    session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
    task INTEGER NOT NULL,      -- from 0
    step INTEGER NOT NULL,      -- from 0
    seq INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    exchange_id TEXT NOT NULL REFERENCES exchanges(id) ON DELETE CASCADE,
    decided_at REAL NOT NULL,
    decision TEXT NOT NULL,     -- observe | ask | close | stop
    reason TEXT,                -- why it was stopped
    nodes TEXT NOT NULL,        -- JSON array: positions in the reference
    message TEXT NOT NULL REFERENCES messages(hash),
    PRIMARY KEY (session_id, task, step)
)""",
    """CREATE TABLE tool_calls (
    session_id TEXT NOT NULL,
    task INTEGER NOT NULL,
    step INTEGER NOT NULL,
    position INTEGER NOT NULL,  -- in the step, from 0
    tool_call_id TEXT,
    name TEXT NOT NULL,
    arguments TEXT,             -- as the model wrote it
    observation TEXT,           -- what it was told
    node INTEGER,               -- position in the reference that the observation came from
    PRIMARY KEY (session_id, task, step, position),
    FOREIGN KEY (session_id, task, step) REFERENCES steps(session_id, task, step) ON DELETE CASCADE
)""",
)

_TOOL_CALL_LOG = """
SELECT
    sessions.run_id AS run,
    sessions.name AS session,
    sessions.scenario_id AS scenario,
    sessions.epoch AS epoch,
    sessions.attempt AS attempt,
    tool_calls.task + 1 AS task,
    tool_calls.step + 1 AS step,
    tool_calls.position + 1 AS position,
    tool_calls.name AS name,
    tool_calls.arguments AS arguments,
    tool_calls.observation AS observation,
    steps.decision AS decision,
    steps.reason AS reason,
    steps.decided_at AS decided_at
FROM tool_calls
JOIN steps USING (session_id, task, step)
JOIN sessions ON sessions.id = tool_calls.session_id
ORDER BY sessions.seq, tool_calls.task, tool_calls.step, tool_calls.position
"""

_TOOL_CALL_LOG_WITH_OUTCOMES = _TOOL_CALL_LOG.replace(
    "    steps.decision AS decision,", "    tool_calls.outcome AS outcome,\n    steps.decision AS decision,"
)

_HANDOVERS = """CREATE TABLE handovers (
    session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
    turn INTEGER NOT NULL,
    position INTEGER NOT NULL,  -- in the turn, from 0
    step INTEGER NOT NULL,      -- steps of the task before it
    exchange_id TEXT NOT NULL REFERENCES exchanges(id) ON DELETE CASCADE,
    message TEXT NOT NULL,      -- JSON: the assistant message in the conversation
    aliases TEXT NOT NULL,      -- JSON object: the agent's id of a call -> its id in the message
    results TEXT,               -- JSON array: the agent's messages with the results
    thread TEXT,                -- JSON: what the conversation is known by from then on
    PRIMARY KEY (session_id, turn, position)
)"""


def first_schema(db: Database) -> None:
    """Tables, indexes and the view `tool_call_log`, in which all numbers count from 1.

    Which tool calls did a session make, with which arguments, in which order, and what
    were they told?

        select task, step, name, arguments, observation
        from tool_call_log where session = 'ledger_1.e1' order by task, step, position
    """
    for statement in _TABLES:
        db.execute(statement)
    for table in ("sessions", "turns", "tasks", "steps", "exchanges"):
        db.table(table).create_index(["seq"], unique=True)
    db.table("sessions").create_index(["run_id", "name"])
    for columns in (["session_id", "arrival"], ["run_id", "arrival"], ["parent_id"]):
        db.table("exchanges").create_index(columns)
    db.table("steps").create_index(["exchange_id"])
    db.create_view("tool_call_log", _TOOL_CALL_LOG)


def run_names(db: Database) -> None:
    """A Run may have a name beside its id, one that no other Run of the log has."""
    db.table("runs").add_column("name", str)
    db.table("runs").create_index(["name"], unique=True)


def plans_and_threads(db: Database) -> None:
    """What a driver was going to play of a Run, and what a turn's conversation is known by."""
    db.execute(
        """CREATE TABLE planned (
    run_id TEXT NOT NULL REFERENCES runs(id) ON UPDATE CASCADE ON DELETE CASCADE,
    scenario_id TEXT NOT NULL,
    scenario_hash TEXT NOT NULL REFERENCES scenarios(hash),
    epoch INTEGER NOT NULL,
    PRIMARY KEY (run_id, scenario_id, epoch)
)"""
    )
    db.table("turns").add_column("thread", str)


def live_sessions(db: Database) -> None:
    """What live Sessions need: the agent's words as they came, what it lost, what calls came to."""
    db.table("turns").add_column("asked", str)
    db.table("exchanges").add_column("findings", str)
    db.table("tool_calls").add_column("outcome", str)
    db.table("exchanges").create_index(["response_id"])
    db.execute(_HANDOVERS)
    db.create_view("tool_call_log", _TOOL_CALL_LOG_WITH_OUTCOMES, replace=True)


def growth(db: Database) -> None:
    """Links take a third less room, and indexes hold what is looked for by them alone: responses by the
    ids that the proxy gives, exchanges by a parent or a Session that they have.

    The links are copied: to turn a table into one without row numbers there is no other way.
    """
    db.execute(
        """CREATE TABLE new_chains (
    hash TEXT PRIMARY KEY,      -- names the history that ends here
    parent TEXT REFERENCES chains(hash),
    message TEXT NOT NULL REFERENCES messages(hash),
    position INTEGER NOT NULL   -- from 0
) WITHOUT ROWID"""
    )
    db.execute("INSERT INTO new_chains SELECT hash, parent, message, position FROM chains ORDER BY hash")
    db.execute("DROP TABLE chains")
    db.execute("ALTER TABLE new_chains RENAME TO chains")
    for name, columns, which in (
        ("response_id", "response_id", "side = 'agent' AND substr(response_id, 1, 5) = 'resp_'"),
        ("parent_id", "parent_id", "parent_id IS NOT NULL"),
        ("session_id_arrival", "session_id, arrival", "session_id IS NOT NULL"),
    ):
        db.execute(f"DROP INDEX idx_exchanges_{name}")
        db.execute(f"CREATE INDEX idx_exchanges_{name} ON exchanges({columns}) WHERE {which}")


def answers(db: Database) -> None:
    """Answers are compressed by a dictionary, of which this text is the beginning (see `answers`)."""
    db.execute("INSERT INTO meta VALUES ('answer_dictionary', ?)", (DICTIONARY,))
