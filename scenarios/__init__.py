"""What should happen: Scenarios, how they are loaded, validated and matched. Imports nothing of ours."""

from scenarios.load import BUNDLED, ScenarioFile, load, parse_record, read_file
from scenarios.problems import ScenarioError
from scenarios.types import ASK, CLOSE, LABELS, SUBTYPES, Node, Scenario, Task, Tool, ToolCall
from scenarios.validate import Finding, validate

__all__ = [
    "ASK",
    "BUNDLED",
    "CLOSE",
    "LABELS",
    "SUBTYPES",
    "Finding",
    "Node",
    "Scenario",
    "ScenarioError",
    "ScenarioFile",
    "Task",
    "Tool",
    "ToolCall",
    "load",
    "parse_record",
    "read_file",
    "validate",
]
