"""Similarity of two texts as the packages `rouge` 1.0.1 and `jieba` 0.42.1 give it."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from functools import cache, partial
from typing import Any

ROUGE_STEPS = 982
"""Longest way back through one LCS table that the released checker survives.

`rouge` walks back recursively, one frame per step. Python's limit of 1000 frames,
less those of `python -m wtb.eval_runner` down to the comparison of a top-level
argument, leaves 982 (measured); a longer way gives "rouge calculation failed".
"""


@cache
def _tokenizer() -> Any:
    """A tokenizer of our own: words that others add to jieba's do not count here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jieba
    # For all in this process that cut with jieba: what comes out is the same.
    jieba.finalseg.viterbi = partial(_likeliest_states, jieba.finalseg)
    jieba.setLogLevel(logging.CRITICAL)
    tokenizer = jieba.Tokenizer()
    # Named by version, lest the dictionary of another jieba be read.
    tokenizer.cache_file = f"wildtoolbench-jieba-{jieba.__version__}.cache"
    tokenizer.initialize()
    return tokenizer


def _likeliest_states(
    model: Any,
    characters: str,
    states: str,
    start: Mapping[str, float],
    following: Mapping[str, Mapping[str, float]],
    emitted: Mapping[str, Mapping[str, float]],
) -> tuple[float, list[str]]:
    """The likeliest states of characters that make no known word, as `jieba.finalseg.viterbi` has them.

    That copies the way so far for each character, and so takes the square of their number: half a minute for
    50,000 times the same one, as models write that do not come to an end.
    """
    least = model.MIN_FLOAT
    values = {state: start[state] + emitted[state].get(characters[0], least) for state in states}
    steps: list[dict[str, str]] = []
    for character in characters[1:]:
        likeliest = {
            state: max(
                (
                    values[before]
                    + following[before].get(state, least)
                    + emitted[state].get(character, least),
                    before,
                )
                for before in model.PrevStatus[state]
            )
            for state in states
        }
        values = {state: value for state, (value, _) in likeliest.items()}
        steps.append({state: before for state, (_, before) in likeliest.items()})
    value, last = max((values[state], state) for state in "ES")
    way = [last]
    for step in reversed(steps):
        way.append(step[way[-1]])
    return value, way[::-1]


def segment(text: str) -> str:
    return " ".join(_tokenizer().cut(text))


def rouge_l(predicted: str, reference: str) -> float | None:
    """F of summary-level ROUGE-L as `Rouge().get_scores` of rouge 1.0.1 gives it.

    Sentences end at "."; words are counted once; the hits are the words in the LCS of
    any two sentences. None where the package raises: a text without a sentence, or a
    way back of more than `ROUGE_STEPS`.

    Not left to the package, because where that hits the recursion limit depends on how
    deep its caller is, and because its tables take gigabytes for long texts.
    """
    ours, theirs = _sentences(predicted), _sentences(reference)
    if not ours or not theirs:
        return None
    hits = _words_in_common(ours, theirs)
    if hits is None:
        return None
    precision = hits / len({word for sentence in ours for word in sentence})
    recall = hits / len({word for sentence in theirs for word in sentence})
    return 2.0 * ((precision * recall) / (precision + recall + 1e-8))


def _sentences(text: str) -> list[tuple[str, ...]]:
    """The different sentences, longest first; one of blanks only has the word ""."""
    sentences = {tuple(part.split()) or ("",) for part in text.split(".") if part}
    return sorted(sentences, key=len, reverse=True)


def _words_in_common(ours: list[tuple[str, ...]], theirs: list[tuple[str, ...]]) -> int | None:
    """How many words are in the LCS of some pair, or None if a way back is too long.

    Only pairs that can add a word are compared, and those long enough to fail.
    """
    holders: dict[str, list[tuple[str, ...]]] = {}
    for sentence in ours:
        for word in set(sentence):
            holders.setdefault(word, []).append(sentence)
    found: set[str] = set()
    for reference in theirs:
        for sentence in ours:
            if len(reference) + len(sentence) <= ROUGE_STEPS:
                break
            words = _common_words(reference, sentence)
            if words is None:
                return None
            found |= words
        for word in set(reference) & holders.keys():
            for sentence in holders[word]:
                if word in found:
                    break
                found |= _common_words(reference, sentence) or set()
    return len(found)


def _common_words(x: tuple[str, ...], y: tuple[str, ...]) -> set[str] | None:
    """The words of the LCS that `rouge` reconstructs, or None if its way back is too long.

    Bit i of `gains[j]` says that the LCS of `x[:i + 1]` and `y[:j]` is longer than that
    of `x[:i]` and `y[:j]`, so counting bits reads the table (Hyyro's bit-parallel LCS).
    """
    if min(len(x), len(y)) > ROUGE_STEPS:
        return None
    places: dict[str, int] = {}
    for i, word in enumerate(x):
        places[word] = places.get(word, 0) | 1 << i
    full = (1 << len(x)) - 1
    flat, gains = full, [0]
    for word in y:
        matched = flat & places.get(word, 0)
        flat = ((flat + matched) | (flat - matched)) & full
        gains.append(full ^ flat)
    words: set[str] = set()
    i, j = len(x), len(y)
    for _ in range(ROUGE_STEPS + 1):
        if i == 0 or j == 0:
            return words
        below = (1 << (i - 1)) - 1
        if x[i - 1] == y[j - 1]:
            words.add(x[i - 1])
            i, j = i - 1, j - 1
        elif (gains[j] & below).bit_count() > (gains[j - 1] & (below << 1 | 1)).bit_count():
            i -= 1
        else:
            j -= 1
    return None
