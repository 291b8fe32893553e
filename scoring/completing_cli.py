"""What a shell completes of scenario files: packs and files, and the ids in one."""

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
    """The ids in the file that stands before."""
    from scenarios.completing import begun_ids

    file = context.params.get("file")
    return [] if file is None else begun_ids((file,), begun)
