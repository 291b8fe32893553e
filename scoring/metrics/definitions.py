"""What every figure means: the definitions of all modules that make figures, in the order of the pages."""

from __future__ import annotations

from scoring.metrics import (
    accuracy,
    calls,
    cells,
    efficiency,
    null_agents,
    passes,
    progress,
    transitions,
    writes,
)
from scoring.metrics.figures import Definitions
from scoring.verdicts import error_classes, live

MODULES = (
    accuracy,
    progress,
    transitions,
    passes,
    error_classes,
    cells,
    live,
    calls,
    writes,
    efficiency,
    null_agents,
)

DEFINITIONS: Definitions = {
    name: definition for module in MODULES for name, definition in module.DEFINITIONS.items()
}
