"""What a shell completes as the value of an option: packs of scenarios, and their ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def complete_scenarios(
    context: click.Context, parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """Packs that begin so, else files."""
    from click.shell_completion import CompletionItem

    from scenarios.packs import begun_packs

    return [CompletionItem(it) for it in begun_packs(begun)] or [CompletionItem(begun, type="file")]


def complete_ids(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """The ids of the scenarios that `--scenarios` names: of the bundled ones without it."""
    from scenarios.completing import begun_ids
    from scenarios.packs import BUNDLED_WORD

    return begun_ids(context.params.get("files") or (BUNDLED_WORD,), begun)
