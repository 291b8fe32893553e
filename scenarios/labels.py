"""Task labels and turn subtypes: the names the data uses, in English and Chinese, and what a label means."""

from __future__ import annotations

import re
from collections.abc import Sequence

from scenarios.types import LABELS, SUBTYPES, Node

MULTI = "Multi-Tool"
"""A label of older data that does not say which kind of multi-tool task it is."""

CHINESE_LABELS = {
    "单工具": "Single-Tool",
    "单": "Single-Tool",
    "多工具-并行": "Parallel Multi-Tool",
    "并行多工具": "Parallel Multi-Tool",
    "多工具-串行": "Sequential Multi-Tool",
    "串行多工具": "Sequential Multi-Tool",
    "多工具-串并行": "Mixed Multi-Tool",
    "串并行多工具": "Mixed Multi-Tool",
    "多工具-混合": "Mixed Multi-Tool",
    "混合多工具": "Mixed Multi-Tool",
    "多工具": MULTI,
    "多": MULTI,
    "澄清": "Clarify",
    "追问": "Clarify",
    "反问": "Clarify",
    "反": "Clarify",
    "闲聊": "Chat",
    "聊天": "Chat",
    "拒": "Chat",
}
"""Chinese names; the one-letter ones are those of the older C3 benchmark."""

CHINESE_SUBTYPES = dict(zip(("指代理解", "省略成分", "长期记忆"), SUBTYPES, strict=True))

FIRST_TURN = "First Turn"
"""What some files write in the place of the first Task's (absent) subtype."""


def label_named(name: str) -> str | None:
    """The label (or `MULTI`) that `name` stands for; None when there is no such label."""
    tidy = _tidy(name)
    if tidy in LABELS or tidy == MULTI:
        return tidy
    return CHINESE_LABELS.get(tidy)


def subtype_named(name: str) -> str | None:
    """The turn subtype that `name` stands for; None when there is no such subtype."""
    tidy = _tidy(name)
    return tidy if tidy in SUBTYPES else CHINESE_SUBTYPES.get(tidy)


def derived_label(nodes: Sequence[Node]) -> str:
    """The label that fits a Reference, for records that have none.

    Chat without a call and without an ask, Clarify with an ask, Single-Tool with one call;
    else by the shape of the calls (`multi_tool_label`).
    """
    if any(node.is_ask for node in nodes):
        return "Clarify"
    calls = sum(node.is_call for node in nodes)
    if calls == 0:
        return "Chat"
    return "Single-Tool" if calls == 1 else multi_tool_label(nodes)


def multi_tool_label(nodes: Sequence[Node]) -> str:
    """Sequential when the calls form one chain, Parallel when none waits for another, else Mixed."""
    chains = _call_chains(nodes)
    calls = [i for i, node in enumerate(nodes) if node.is_call]
    longest = max((chains[i] for i in calls), default=0)
    if longest <= 1:
        return "Parallel Multi-Tool"
    return "Sequential Multi-Tool" if longest == len(calls) else "Mixed Multi-Tool"


def _call_chains(nodes: Sequence[Node]) -> list[int]:
    """For each node the most calls on one path that ends there, itself included."""
    chains: list[int | None] = [None] * len(nodes)
    waiting = list(range(len(nodes)))
    while waiting:
        node = nodes[waiting[-1]]
        open_ones = [i for i in node.dependencies if chains[i] is None]
        if open_ones:
            waiting.extend(open_ones)
            continue
        before = max((chains[i] or 0 for i in node.dependencies), default=0)
        chains[waiting.pop()] = before + node.is_call
    return [chain or 0 for chain in chains]


def _tidy(name: str) -> str:
    return re.sub(r"\s*[-－–—_]\s*", "-", name.strip())
