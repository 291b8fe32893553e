"""The session that `scenarios new` writes: small, commented, sound, with the kinds of Task one starts from.

Pure: names in, text out.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

LAID_OUT = """// A scenario file: one session, a conversation in tasks that follow each other.
// Lines that begin with // are comments. For several sessions write a list: [ {...}, {...} ]
// Or put each session on a line of its own, without commas between them.
{
  // The name of the session: letters, digits and . _ ~ -, a number at the end.
  "id": "NAME",

  // What day it is for the agent. The weekday must be the true one.
  "env_info": "2025-06-03 10:15:00 Tuesday",

  // What the LLM is offered, in the form of the OpenAI API. Nothing is behind a tool
  // but the observations below, so describe it so well that there is one right call.
  "tools": [
    {"type": "function", "function": {
      "name": "get_hours",
      "description": "The opening hours of one branch of the library on one day.",
      "parameters": {
        "type": "object",
        "properties": {
          "branch": {"type": "string", "description": "The branch.", "enum": ["central", "harbour"]},
          "date": {"type": "string", "description": "The day, YYYY-MM-DD."}
        },
        "required": ["branch", "date"]
      }
    }},
    {"type": "function", "function": {
      "name": "reserve_book",
      "description": "Reserve a book for pick-up. The branch is for the reader to choose, never guess it.",
      "parameters": {
        "type": "object",
        "properties": {
          "title": {"type": "string", "description": "The title, as the reader gave it."},
          "branch": {"type": "string", "description": "Where to pick it up.", "enum": ["central", "harbour"]}
        },
        "required": ["title", "branch"]
      }
    }}
  ],

  // The first words of the user in each task, as people write: short, messy, with words like "it".
  "tasks": [
    "how long are central and harbour open tomorrow?",
    "Fine. Then reserve The Salt Path for me please.",
    "Thanks! Is that one a novel or did it really happen?"
  ],

  // For each task the one right answer, its Reference: a list of nodes. Each has
  //   action           a call with its arguments, or one of two things that are done in plain text:
  //                    ask_user_for_required_parameters and prepare_to_answer, the close
  //   observation      what the call is answered; the question; the final text
  //   dependency_list  the nodes that must come first, by position from 0
  "answer_list": [
    [
      // Two calls that wait for nothing: they can be made in one step.
      {"action": {"name": "get_hours", "arguments": {"branch": "central", "date": "2025-06-04"}},
       "observation": {"branch": "central", "open": "09:00", "close": "20:00"}, "dependency_list": []},
      {"action": {"name": "get_hours", "arguments": {"branch": "harbour", "date": "2025-06-04"}},
       "observation": {"branch": "harbour", "open": "12:00", "close": "18:00"}, "dependency_list": []},
      {"action": {"name": "prepare_to_answer", "arguments": {}},
       "observation": "Tomorrow Central is open from 9 to 20, Harbour from 12 to 18.",
       "dependency_list": [0, 1]}
    ],
    [
      // Something is missing, so the agent has to ask. The user's reply is scripted.
      {"action": {"name": "ask_user_for_required_parameters", "arguments": {}},
       "observation": "At which branch would you like to pick it up?", "dependency_list": [],
       "user_input": "the one that closes later"},
      {"action": {"name": "reserve_book", "arguments": {"title": "The Salt Path", "branch": "central"}},
       "observation": {"reservation": "R-118", "status": "reserved"}, "dependency_list": [0]},
      {"action": {"name": "prepare_to_answer", "arguments": {}},
       "observation": "It is reserved at Central, R-118.", "dependency_list": [0, 1]}
    ],
    [
      // Nothing is to be called: the close alone.
      {"action": {"name": "prepare_to_answer", "arguments": {}},
       "observation": "It is a memoir, so it is told as a true story.", "dependency_list": []}
    ]
  ],

  // The kind of each task, and for each task after the first how it hangs on what was said before.
  // Both may be left out.
  "task_types": ["Parallel Multi-Tool", "Clarify", "Chat"],
  "turn_subtypes": ["Partial Information", "Coreferential Reference"],

  // What a schema does not say, for scores alone: which tools change something, which texts
  // may be worded differently. May be left out.
  "annotations": {
    "reserve_book": {"side_effects": true}
  }
}
"""

LINES = (
    "// A scenario file: each line is one session. Lines that begin with // are comments.",
    "// To write by hand, the other form is easier to read: wildproxy scenarios new NAME.json",
)

COMMENT_LINE = re.compile(r"(?m)^\s*//.*\n")


def template(stem: str, *, one_line: bool = False) -> str:
    """The text of a new scenario file; `stem`, that of its name, gives its session a name.

    It is laid out over many lines, or `one_line` long with two comments before it.
    """
    named = LAID_OUT.replace("NAME", f"{_name(stem)}_1", 1)
    if not one_line:
        return named
    record = json.loads(COMMENT_LINE.sub("", named))
    return "\n".join([*LINES, json.dumps(record, ensure_ascii=False)]) + "\n"


def next_commands(file: Path) -> list[str]:
    """What to do with it, as lines to print."""
    name, log = shlex.quote(str(file)), shlex.quote(f"{file.stem}.db")
    return [
        f"Wrote {file}: one session of three tasks, which can be played as it stands. Next:",
        f"  wildproxy scenarios validate {name}",
        f"  wildproxy drive --agent builtin --scenarios {name} --provider sim:oracle --log {log}",
        f"  wildproxy score {log}",
    ]


def _name(stem: str) -> str:
    """A stem as a part of an id, which stands in URLs."""
    return re.sub(r"[^A-Za-z0-9._~-]+", "_", stem).strip("._") or "session"
