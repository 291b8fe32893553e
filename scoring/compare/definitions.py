"""What the figures of a comparison mean, by their names in its JSON document."""

from __future__ import annotations

from scoring.metrics.figures import Definition, Definitions

_PAIRED = "E. Miller, arXiv 2411.00640: paired differences"

DEFINITIONS: Definitions = {
    "difference": Definition(
        "B - A",
        "rate",
        "The rate of B less that of A, over the pairs: Tasks or Sessions of the same Scenarios (by id and "
        "hash) that were scored in both Runs, in as many epochs of either. Its interval: Tango's score "
        "interval for Sessions played once, else the percentiles of a bootstrap that draws Scenarios, "
        "which over fewer Scenarios than a verdict takes is what so few do not show, and holds 0.",
        f"{_PAIRED}; T. Tango, Statistics in Medicine 17 (1998) 891-908",
    ),
    "p": Definition(
        "p",
        "ratio",
        "How likely so large a difference is if the Runs are equal: exact McNemar for Sessions played once, "
        "else the exact sign-flip permutation test over the Scenarios' differences. Two-sided, no sampling.",
        "Q. McNemar, Psychometrika 12 (1947) 153-157; R. A. Fisher, The Design of Experiments (1935), 21",
        "lower",
    ),
    "gained": Definition(
        "gained", "count", "Pairs in which B was right more often than A.", "own definition", None
    ),
    "lost": Definition(
        "lost", "count", "Pairs in which B was right less often than A.", "own definition", "lower"
    ),
    "largest_loss": Definition(
        "Largest loss that is not ruled out",
        "rate",
        "By how much B may be worse for all that these pairs show. A --margin above it makes the gate pass.",
        "own definition: the interval's lower bound, and never less than what so few Scenarios do not show",
        "lower",
    ),
    "detectable": Definition(
        "Detectable with 80 % power",
        "rate",
        "The least difference that so many pairs, changing as often as these, show four times in five.",
        "R. J. Connor, Biometrics 43 (1987) 207-211; H. S. Bloom, Evaluation Review 19 (1995) 547-556",
        None,
    ),
    "least_changes": Definition(
        "Least changes",
        "count",
        "How many Scenarios must change, all the same way, before p can be below alpha.",
        "own definition",
        None,
    ),
    "noise_floor": Definition(
        "Noise floor",
        "rate",
        "The flip rate of a Run with several epochs: how often Tasks change without a change of the agent.",
        "tau-bench issue 57; tau2-bench issue 540",
        "lower",
    ),
}
