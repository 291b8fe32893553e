"""Free text: worded differently, does it say the same?

Likeness alone cannot tell: "do not cancel" is much like "do cancel", "8 pm" like "7 pm", and "Rome to
Paris" has every word of "Paris to Rome". So numbers, dates, times, negations and names must agree.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from scenarios.similarity import rouge_l, segment
from scenarios.strict.counting import NUMBER_WORD, spelt_numbers
from scenarios.strict.faults import Fault
from scenarios.strict.rules import Steps, fault, one_of, shown
from scenarios.strict.texts import DATE, TIME, ZONE, moment_form, normal

EDIT_RATIO = 0.8
ROUGE_L = 0.7
LONG = 1000
"""Characters of two texts whose edit ratio counts characters; in longer ones it counts words, as many."""

_HAN = re.compile("[\u4e00-\u9fff]")

_MOMENT = re.compile(
    rf"(?<![\w.])(?:{DATE}(?:(?: ?t ?|,? ?)(?:(?=\d{{1,2}}(?::\d|\ ?[ap]\.?m\b)){TIME}){ZONE})?)(?![\d:])"
)
_CLOCK = re.compile(rf"(?<![\w.:])(?=\d{{1,2}}(?::\d| ?[ap]\.?m)){TIME}{ZONE}(?![\d:])")
_NUMBER = re.compile(r"(?:(?<![\w.)])[-+](?=\.?\d))?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)*")
_NEGATION = re.compile(
    r"\b(?:no(?!\.? ?\d)|not|never|none|neither|nor|nothing|nobody|nowhere|without|cannot|dont|cant|wont)\b"
    r"|n['’]t\b|\bnon-|[非不没无別别勿未莫甭]"
)
_NO_NEGATION = re.compile(
    "非常|非洲|是非|不仅|不但|不过|不管|不论|不断|不久|不错|无论|无线|无锡|未来|别墅|别人|特别|分别|类别|级别|性别|区别|告别|差别|识别|个别|辨别"
)
"""Words with a sign of negation in them that deny nothing."""

_OPENING = re.compile(r"[\"“‘「『《]|(?<!\w)'")
_CLOSING = {'"': '"', "“": "”", "‘": "’", "「": "」", "『": "』", "《": "》", "'": "'"}
_CLOSED = re.compile(r"'(?!\w)|[^']")
_QUOTES = re.compile("[“”「」『』《》]")
_WORD = re.compile(r"[^\W\d_](?:[\w-]|['’](?!s\b)(?=\w))*")
_SENTENCE_ENDS = tuple(".!?:。！？：")
_BEFORE_SENTENCE = " \t\n\"“‘'("
_DIRECTED = re.compile(r"\b(?:from|to|into|via) +(?:(?:the|an?) +)?([^\W\d_][\w-]*)")
_DIRECTIONS = frozenset("从到由至往向给")


def wording_faults(steps: Steps, actual: str, expected: str) -> list[Fault]:
    """What in free text disagrees; nothing if it is worded much alike and agrees in the rest."""
    mine, theirs = _plainly_quoted(normal(expected)), _plainly_quoted(normal(actual))
    if mine == theirs:
        return []
    faults = [
        fault(
            rule, steps, f"{what}: {_listed(found)}, not {_listed(wanted)}", expected, actual, (wanted, found)
        )
        for rule, what, wanted, found in (
            ("args.free_text_number", "other numbers or times, or elsewhere", *_numbers_apart(mine, theirs)),
            ("args.free_text_negation", "denies other things", *_negations_apart(mine, theirs)),
            ("args.free_text_name", "other names, or in another order", *_names_apart(expected, actual)),
        )
        if wanted != found
    ]
    if not faults and not _is_alike(_with_plain_moments(mine), _with_plain_moments(theirs)):
        what = f"{shown(actual)} is worded too differently from {shown(expected)}"
        faults.append(fault("args.free_text", steps, what, expected, actual, (mine, theirs)))
    return faults


def _plainly_quoted(text: str) -> str:
    """The text with one kind of quotation marks, so that their kind makes nothing unlike."""
    return _QUOTES.sub('"', text).replace("’", "'").replace("‘", "'")


def _listed(found: Sequence[str]) -> str:
    return one_of(found) if found else "none"


# --- Likeness ----------------------------------------------------------------


def _is_alike(expected: str, actual: str) -> bool:
    if _edit_ratio(expected, actual) >= EDIT_RATIO:
        return True
    if _HAN.search(expected) or _HAN.search(actual):
        expected, actual = segment(expected), segment(actual)
    return (rouge_l(actual, expected) or 0.0) >= ROUGE_L


def _edit_ratio(expected: str, actual: str) -> float:
    """Ratio of `difflib`: twice the common part by the length of both."""
    mine: Sequence[str] = expected
    theirs: Sequence[str] = actual
    if len(expected) + len(actual) > LONG:
        mine, theirs = expected.split(), actual.split()
        if len(mine) + len(theirs) > LONG:
            return 0.0
    matcher = difflib.SequenceMatcher(None, theirs, mine, autojunk=False)
    return matcher.ratio() if matcher.quick_ratio() >= EDIT_RATIO else 0.0


# --- Numbers, negations ------------------------------------------------------


def _numbers_apart(expected: str, actual: str) -> tuple[list[str], list[str]]:
    """The numbers of both texts; where all else is the same, in the order in which they stand."""
    mine, theirs = _numbers(expected), _numbers(actual)
    if mine == theirs:
        (around, in_order), (around_theirs, theirs_in_order) = _standing(expected), _standing(actual)
        if around == around_theirs:
            return in_order, theirs_in_order
    return mine, theirs


def _standing(text: str) -> tuple[str, list[str]]:
    """A text around its numbers and times, and these in their order, those of a list sorted."""
    found: list[str] = []
    for pattern, form_of in _FIGURES:

        def taken(match: re.Match[str], form_of: Callable[[re.Match[str]], str | None] = form_of) -> str:
            form = form_of(match) if len(found) < _MOST_FIGURES else None
            if form is None:
                return match[0]
            found.append(form)
            return chr(_MARK + len(found) - 1)

        text = pattern.sub(taken, text)
    return _MARKS.sub("#", text), [found[at] for at in _with_lists_sorted(text, found)]


def _with_lists_sorted(text: str, found: Sequence[str]) -> Iterator[int]:
    """The marks of a text in their order, those of a list ("3, 5 and 7", "$20 or $30") by what they mean."""
    marks = [it for it in _MARKS.finditer(text) if ord(it[0]) - _MARK < len(found)]
    item: list[int] = []
    for number, mark in enumerate(marks):
        if number and not _are_listed(text, marks[number - 1], mark):
            yield from sorted(item, key=found.__getitem__)
            item = []
        item.append(ord(mark[0]) - _MARK)
    yield from sorted(item, key=found.__getitem__)


def _are_listed(text: str, one: re.Match[str], other: re.Match[str]) -> bool:
    """Is there no more between two marks than between items of a list, each with the same around it?"""
    between = _BETWEEN.fullmatch(text, one.end(), other.start())
    return (
        between is not None
        and text.startswith(between["unit"], other.end())
        and text.endswith(between["before"], 0, one.start())
    )


def _numbers(text: str) -> list[str]:
    """Dates, times and numbers of a text in normal form, sorted; each in a form of its own."""
    found: list[str] = []

    def taken(match: re.Match[str]) -> str:
        form = moment_form(match)
        if form is None:
            return match[0]
        found.extend(form.split("T", 1))
        return " "

    rest = _CLOCK.sub(taken, _MOMENT.sub(taken, text))
    found += [_value(match[0]) for match in _NUMBER.finditer(rest)]
    found += spelt_numbers(rest)
    return sorted(found)


def _with_plain_moments(text: str) -> str:
    """The text with its dates and times in canonical form, so that their spelling makes nothing unlike."""

    def plain(match: re.Match[str]) -> str:
        return moment_form(match) or match[0]

    return _CLOCK.sub(plain, _MOMENT.sub(plain, text))


def _value(digits: str) -> str:
    """`1,000` and `1000.0` are one number, `1.2.3` is itself."""
    plain = digits.replace(",", "").removeprefix("+")
    if plain.count(".") > 1:
        return plain
    whole, _, part = plain.partition(".")
    sign, whole = whole[: whole.startswith("-")], whole.lstrip("-").lstrip("0") or "0"
    part = part.rstrip("0")
    value = f"{whole}.{part}" if part else whole
    return value if value == "0" else sign + value


_FIGURES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str | None]], ...] = (
    (_MOMENT, moment_form),
    (_CLOCK, moment_form),
    (_NUMBER, lambda match: _value(match[0])),
    (NUMBER_WORD, lambda match: next(iter(spelt_numbers(match[0])), None)),
)
_MARK, _MOST_FIGURES = 0xE000, 6400
_MARKS = re.compile("[\ue000-\uf8ff]")
"""Stand for numbers: characters of Unicode's area for private use."""
_BETWEEN = re.compile(
    r"(?P<unit>.{0,12}?)(?: ?(?:[,;/&、和或及与跟]|\b(?:and|or|plus|as well as)\b))+ ?(?P<before>.{0,12}?)"
)
_CLAUSE_ENDS = re.compile(r"[,;:.!?，；。]+\s*|\b(?:but|and|or|while|because)\b|[但而]")
_CONTRACTED = (("cannot", "can not"), ("can't", "can not"), ("won't", "will not"))


def _negations_apart(expected: str, actual: str) -> tuple[list[str], list[str]]:
    """The negations of both texts; where all else is the same, the clauses that have one."""
    mine, theirs = _negations(expected), _negations(actual)
    if mine and mine == theirs:
        (around, denied), (around_theirs, denied_theirs) = _clauses(expected), _clauses(actual)
        if around == around_theirs:
            return denied, denied_theirs
    return mine, theirs


def _clauses(text: str) -> tuple[list[str], list[str]]:
    """The clauses of a text without their negations and blanks, and those of them that deny something."""
    for short, long in _CONTRACTED:
        text = text.replace(short, long)
    parts = [_NO_NEGATION.sub("", part) for part in _CLAUSE_ENDS.split(text)]
    bare = ["".join(re.findall(r"\w+", _NEGATION.sub(" ", part))) for part in parts]
    return bare, [
        f"not in {plain!r}" for plain, part in zip(bare, parts, strict=True) if _NEGATION.search(part)
    ]


def _negations(text: str) -> list[str]:
    """The negations of a text in normal form; each as "not", because words for no differ."""
    return ["not" for _ in _NEGATION.finditer(_NO_NEGATION.sub(" ", text))]


# --- Names -------------------------------------------------------------------


def _names_apart(expected: str, actual: str) -> tuple[list[str], list[str]]:
    """The names that tell the two texts apart, in the order of each; equal lists if none do.

    A name that is quoted in one text must be in the other. A capitalised name that the other lacks is
    a fault if that has another in its stead. Names of both come in one order.
    """
    mine, theirs = (" ".join(unicodedata.normalize("NFKC", it).split()) for it in (expected, actual))
    for one, other, swapped in ((mine, normal(theirs), False), (theirs, normal(mine), True)):
        lost = [name for name in _quoted(one) if name not in other]
        if lost:
            return ([], lost) if swapped else (lost, [])
    proper = _proper_names(mine) | _proper_names(theirs)
    names = proper | _ends(mine) | _ends(theirs) | {*_quoted(mine)}
    ours, others = _in_order(mine, names), _in_order(theirs, names)
    both = {*ours} & {*others}
    lost = [it for it in ours if it in proper and it not in both]
    won = [it for it in others if it in proper and it not in both]
    if lost and won:
        return lost, won
    return [it for it in ours if it in both], [it for it in others if it in both]


def _quoted(text: str) -> list[str]:
    return [normal(name) for name in _quotations(text)]


def _quotations(text: str) -> Iterator[str]:
    """What stands between quotation marks, from the left; marks within it begin nothing."""
    # No pattern for the whole: it would look through all the rest for each mark that nothing closes.
    unclosed: set[str] = set()
    after = 0
    for mark in _OPENING.finditer(text):
        if mark.start() < after or mark[0] in unclosed:
            continue
        end = text.find(_CLOSING[mark[0]], mark.end())
        if end < 0:
            unclosed.add(mark[0])
        elif end > mark.end() and _CLOSED.match(text, end):
            yield text[mark.end() : end]
            after = end + 1


def _proper_names(text: str) -> set[str]:
    """Capitalised words that do not begin a sentence."""
    return {
        normal(match[0])
        for match in _WORD.finditer(text)
        if match[0][0].isupper() and match[0] != "I" and not _begins_sentence(text, match.start())
    }


def _begins_sentence(text: str, start: int) -> bool:
    # Not the whole text before: that would take the square of its length.
    before = text[max(0, start - 12) : start].rstrip(_BEFORE_SENTENCE)
    return before.endswith(_SENTENCE_ENDS) or (not before and start <= 12)


def _ends(text: str) -> set[str]:
    """Words that say where from and where to: of "from rome to paris" both cities, and of 从北京到上海."""
    found = {match[1] for match in _DIRECTED.finditer(normal(text))}
    if _HAN.search(text):
        words = segment(normal(text)).split()
        found |= {after for word, after in pairwise(words) if word in _DIRECTIONS}
    return found


def _in_order(text: str, names: set[str]) -> list[str]:
    """The names that the text has, by where each is first."""
    text = normal(text)
    words: dict[str, int] = {}
    for match in _WORD.finditer(text):
        words.setdefault(match[0], match.start())
    at = {name: words.get(name, -1) if _is_word(name) else text.find(name) for name in names}
    return sorted((name for name in names if at[name] >= 0), key=lambda name: (at[name], name))


def _is_word(name: str) -> bool:
    """A word that spaces part from others; Chinese names and quoted phrases are looked for as they are."""
    return name.isascii() and _WORD.fullmatch(name) is not None
