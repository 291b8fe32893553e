"""The statements that write rows: a row's values go in under the names of its columns."""

from __future__ import annotations


def _insert(table: str, columns: str, verb: str = "INSERT") -> str:
    names = columns.split()
    return f"{verb} INTO {table} ({', '.join(names)}) VALUES ({', '.join(':' + name for name in names)})"


RUN = _insert("runs", "id created_at config config_hash versions")
STARTED = "INSERT OR REPLACE INTO meta VALUES ('started_at', :started_at)"
SCENARIO = _insert("scenarios", "hash id record source source_sha256", "INSERT OR IGNORE")
SESSION = _insert("sessions", "id seq run_id name scenario_id scenario_hash epoch attempt opened_at")
TURN = _insert("turns", "session_id turn seq task kind text opened_at")
PLANNED = _insert("planned", "run_id scenario_id scenario_hash epoch", "INSERT OR IGNORE")
BEGUN = """UPDATE turns SET seq = :seq, said = :said, asked = :asked, thread = :thread
    WHERE session_id = :session_id AND turn = :turn"""
TASK = _insert("tasks", "session_id task seq ending ended_at")
START = _insert(
    "exchanges",
    """id seq arrival side parent_id run_id session_id turn correlation reason method path started_at
    finish_state stream request_model key_hash request_sha256 request_headers message_count tip tools
    body changes findings""",
).replace(":run_id", "coalesce(:run_id, (SELECT run_id FROM sessions WHERE id = :session_id))")
FINISH = """UPDATE exchanges SET seq = :seq, finished_at = :finished_at, finish_state = :finish_state,
    status = :status, time_to_first_chunk = :time_to_first_chunk, response_id = :response_id,
    response_model = :response_model, finish_reasons = :finish_reasons, input_tokens = :input_tokens,
    output_tokens = :output_tokens, output_message = :output_message,
    response_headers = :response_headers, raw = :raw, error_type = :error_type, error = :error
    WHERE id = :id AND finish_state = 'pending'"""
DELIVERED = "UPDATE exchanges SET seq = :seq, delivered_at = :delivered_at WHERE id = :id"
STEP = _insert("steps", "session_id task step seq turn exchange_id decided_at decision reason nodes message")
TOOL_CALL = _insert(
    "tool_calls", "session_id task step position tool_call_id name arguments observation node outcome"
)
HANDOVER = _insert("handovers", "session_id turn position step exchange_id message aliases results thread")
HANDOVER_DONE = """UPDATE handovers SET results = :results, thread = :thread
    WHERE session_id = :session_id AND turn = :turn AND position = :position"""
LINK = _insert("chains", "hash parent message position", "INSERT OR IGNORE")
CONTENT = {table: _insert(table, "hash body", "INSERT OR IGNORE") for table in ("messages", "tool_lists")}
