"""The statements that write rows: a row's values go in under the names of its columns.

A value that is not the row's own, but made of it by the store, is named in `made`.
"""

from __future__ import annotations

import re
from operator import attrgetter
from typing import Any

from proxy.log.chains import storable


class Statement:
    """SQL with `:name` for each value, numbered once, since that is four times as fast to bind."""

    def __init__(self, named: str, made: str = "") -> None:
        own = made.split()
        fields = [name for name in dict.fromkeys(re.findall(r":(\w+)", named)) if name not in own]
        places = {name: place for place, name in enumerate([*own, *fields], 1)}
        self.sql = re.sub(r":(\w+)", lambda found: f"?{places[found[1]]}", named)
        self._read = attrgetter(*fields) if fields else _nothing
        self._is_one = len(fields) == 1

    def values(self, row: Any, *made: Any) -> tuple[Any, ...]:
        """What to bind: the values that were `made`, in the order of their names, and those of the row."""
        found = self._read(row)
        if self._is_one:
            found = (found,)
        return (*made, *[it if it.__class__ is not str or it.isascii() else storable(it) for it in found])


def _nothing(row: object) -> tuple[Any, ...]:
    return ()


def _insert(table: str, columns: str, made: str = "", verb: str = "INSERT") -> Statement:
    return Statement(_inserting(table, columns, verb), made)


def _inserting(table: str, columns: str, verb: str = "INSERT") -> str:
    names = columns.split()
    return f"{verb} INTO {table} ({', '.join(names)}) VALUES ({', '.join(':' + name for name in names)})"


RUN = _insert("runs", "id created_at config config_hash versions", "config versions")
STARTED = Statement("INSERT OR REPLACE INTO meta VALUES ('started_at', :started_at)")
SCENARIO = _insert("scenarios", "hash id record source source_sha256", "record", "INSERT OR IGNORE")
SESSION = _insert("sessions", "id seq run_id name scenario_id scenario_hash epoch attempt opened_at", "seq")
TURN = _insert("turns", "session_id turn seq task kind text opened_at", "seq")
PLANNED = _insert("planned", "run_id scenario_id scenario_hash epoch", verb="INSERT OR IGNORE")
BEGUN = Statement(
    """UPDATE turns SET seq = :seq, said = :said, asked = :asked, thread = :thread
    WHERE session_id = :session_id AND turn = :turn""",
    "seq said asked thread",
)
TASK = _insert("tasks", "session_id task seq ending ended_at", "seq ending")
START = Statement(
    _inserting(
        "exchanges",
        """id seq arrival side parent_id run_id session_id turn correlation reason method path started_at
        finish_state stream request_model key_hash request_sha256 request_headers message_count tip tools
        body changes findings""",
    ).replace(":run_id", "coalesce(:run_id, (SELECT run_id FROM sessions WHERE id = :session_id))"),
    """seq arrival finish_state reason path request_model request_headers message_count tip tools body
    changes findings""",
)
FINISH = Statement(
    """UPDATE exchanges SET seq = :seq, finished_at = :finished_at, finish_state = :finish_state,
    status = :status, time_to_first_chunk = :time_to_first_chunk, response_id = :response_id,
    response_model = :response_model, finish_reasons = :finish_reasons, input_tokens = :input_tokens,
    output_tokens = :output_tokens, output_message = :output_message,
    response_headers = :response_headers, raw = :raw, error_type = :error_type, error = :error
    WHERE id = :id AND finish_state = 'pending'""",
    """seq response_id response_model finish_reasons input_tokens output_tokens output_message
    response_headers raw error_type error""",
)
DELIVERED = Statement("UPDATE exchanges SET seq = :seq, delivered_at = :delivered_at WHERE id = :id", "seq")
STEP = _insert(
    "steps",
    "session_id task step seq turn exchange_id decided_at decision reason nodes message",
    "seq reason nodes message",
)
TOOL_CALL = _insert(
    "tool_calls",
    "session_id task step position tool_call_id name arguments observation node outcome",
    "session_id task step tool_call_id name arguments observation",
)
HANDOVER = _insert(
    "handovers",
    "session_id turn position step exchange_id message aliases results thread",
    "message aliases results thread",
)
HANDOVER_DONE = Statement(
    """UPDATE handovers SET results = :results, thread = :thread
    WHERE session_id = :session_id AND turn = :turn AND position = :position""",
    "results thread",
)
LINK = _insert("chains", "hash parent message position", verb="INSERT OR IGNORE")
_BODY = "hash body"
CONTENT = {table: _insert(table, _BODY, _BODY, "INSERT OR IGNORE") for table in ("messages", "tool_lists")}
