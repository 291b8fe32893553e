"""What the figures of `scoring.metrics.efficiency` mean. Pure."""

from __future__ import annotations

from dataclasses import replace

from scoring.metrics.figures import Better, Definition, Definitions, Unit

_LOG = "the log"
_USAGE = "`usage` of the provider's answers"
_PRICES = f"{_USAGE}, and the price table"
_OPTIMAL = "the least number of steps of the released scorer (`min_length`)"


def _less(
    title: str, unit: Unit, text: str, source: str = _LOG, better: Better | None = "lower"
) -> Definition:
    return Definition(title, unit, text, source, better)


def _of_correct(title: str, unit: Unit, text: str, source: str = _LOG) -> Definition:
    return replace(_less(title, unit, text, source), by_verdict=True)


DEFINITIONS: Definitions = {
    "steps_per_task": _less(
        "Steps per task",
        "count",
        "Replies of the LLM, over the tasks that were played to their end and have at least one; n counts "
        "these tasks.",
    ),
    "calls_per_task": _less(
        "Tool calls per task",
        "count",
        "Tool calls made, over the tasks that were played to their end and have at least one step; n counts "
        "these tasks.",
    ),
    "steps_over_optimal": _of_correct(
        "Steps over optimal path",
        "ratio",
        "Steps taken in the correct tasks, over the least number that they can be done in, both summed; 1 is "
        "the shortest way. n counts the correct tasks.",
        _OPTIMAL,
    ),
    "calls_over_reference": _of_correct(
        "Calls over reference",
        "ratio",
        "Tool calls made in the correct tasks whose reference has any, over the calls of these references, "
        "both summed. n counts these tasks.",
    ),
    "tokens_input": _less(
        "Input tokens",
        "tokens",
        "Tokens of all prompts: those of the steps, of calls beside the conversation, and of other calls "
        "(control tools, failures). n counts the calls whose tokens the provider told; a prompt that is sent "
        "again counts again, whether the provider had it cached or not.",
        _USAGE,
    ),
    "tokens_output": _less(
        "Output tokens",
        "tokens",
        "Tokens of all answers, reasoning included, of the same calls as the input tokens. n counts the "
        "calls whose tokens the provider told.",
        _USAGE,
    ),
    "tokens_per_task": _less(
        "Tokens per task",
        "tokens",
        "Input and output tokens of a task's steps, over the tasks that were played to their end and have "
        "these told for every step; n counts these tasks.",
        _USAGE,
    ),
    "tokens_over_optimal": _of_correct(
        "Tokens over optimal path (estimate)",
        "ratio",
        "Tokens of all steps of the correct tasks, over what the least number of steps would have taken at "
        "the mean of each task's own steps (tokens times least number of steps over steps taken), both "
        "summed. An estimate: nobody knows what the steps not taken hold. n counts the correct tasks with "
        "the tokens of every step.",
        f"{_USAGE}, {_OPTIMAL}",
    ),
    "latency_per_step": _less(
        "Latency per step",
        "seconds",
        "From sending the request that a step came of to the end of its answer, without the tries that "
        "failed before it: mean, and percentiles by nearest rank. n counts the steps.",
    ),
    "time_to_first_token": _less(
        "Time to first token",
        "seconds",
        "From sending the request that a step came of to the first event of its stream: mean, and "
        "percentiles by nearest rank. n counts the steps that were streamed.",
    ),
    "task_seconds": _less(
        "Seconds per task",
        "seconds",
        "From opening a task's first turn to the task's end, the agent's own time, retries and waits "
        "included, over the tasks that were played to their end and have at least one step: mean, and "
        "percentiles by nearest rank. n counts these tasks.",
    ),
    "provider_retries": _less(
        "Retries for steps",
        "count",
        "Provider exchanges that failed before the one that a step came of, in the same task. n counts the "
        "steps.",
    ),
    "provider_failures": _less(
        "Provider exchanges without a reply",
        "count",
        "Provider exchanges of which neither a step nor a call of a control tool came, whether the provider "
        "failed or the agent had gone; those that were retried are among them. n counts the finished "
        "exchanges with the provider.",
    ),
    "side_calls": _less(
        "Side calls",
        "count",
        "Calls of an LLM beside the conversation (titles, routers, guardrails, summaries). n counts the "
        "sessions that were begun.",
        better=None,
    ),
    "cost_total": _less(
        "Cost",
        "money",
        "Input and output tokens at the price of the model that was asked for, of all calls; what is cached "
        "is not made cheaper. None if any of the models has no price; n counts the calls whose tokens the "
        "provider told.",
        _PRICES,
    ),
    "cost_per_task": _less(
        "Cost per task",
        "money",
        "Cost of a task's steps, over the tasks that were played to their end and have the tokens of every "
        "step; n counts these tasks.",
        _PRICES,
    ),
    "cost_per_correct_task": _of_correct(
        "Cost per correct task",
        "money",
        "Cost of all calls, those for wrong and unfinished tasks included, over the correct tasks; n counts "
        "these. None if the tokens of any step are unknown.",
        _PRICES,
    ),
    "cost_over_optimal": _of_correct(
        "Cost over optimal path (estimate)",
        "ratio",
        "As tokens over optimal path, with the cost of the steps in place of their tokens. n counts the "
        "correct tasks with the cost of every step.",
        f"{_PRICES}, {_OPTIMAL}",
    ),
}
"""Figures without a group are totals or means; groups are the kinds of call, or mean and percentiles."""
