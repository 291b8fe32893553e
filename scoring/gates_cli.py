"""The options --fail-under and --fail-over, and what becomes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from scoring.errors_cli import InputError

if TYPE_CHECKING:
    from scoring.gates import Gate, Outcome
    from scoring.report import RunReport


def read_gates(fail_under: Sequence[str], fail_over: Sequence[str]) -> list[Gate]:
    """The thresholds in the order given, those of --fail-under first. Raises InputError."""
    if not fail_under and not fail_over:
        return []
    from scoring.gates import GateError, parse_gate

    try:
        return [
            *(parse_gate(text, "under") for text in fail_under),
            *(parse_gate(text, "over") for text in fail_over),
        ]
    except GateError as error:
        raise InputError(str(error)) from error


def check_gates(gates: Sequence[Gate], reports: Sequence[RunReport]) -> list[Outcome]:
    """What comes of each threshold in each run. Raises InputError."""
    if not gates:
        return []
    from scoring.gates import GateError, check

    try:
        return list(check(gates, reports))
    except GateError as error:
        raise InputError(str(error)) from error
