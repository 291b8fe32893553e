"""The packs: the scenario files that come with this package, each called by a name instead of a path."""

from __future__ import annotations

from pathlib import Path

from scenarios.nearest import nearest

FOLDER = Path(__file__).parent / "bundled"

BUNDLED = FOLDER / "sessions.jsonl"

BUNDLED_WORD = "bundled"
"""What users write instead of a path to mean `BUNDLED`; any other pack is called by the stem of its file."""


def packs() -> dict[str, Path]:
    """The file of each pack by its name: the bundled sessions first, the others in alphabetical order."""
    others = (path for path in FOLDER.glob("*.jsonl") if path != BUNDLED)
    return {BUNDLED_WORD: BUNDLED, **{path.stem: path for path in sorted(others)}}


def begun_packs(begun: str) -> list[str]:
    """The names of packs that begin so."""
    return [name for name in packs() if name.startswith(begun)]


def file_of(name: str | Path) -> Path:
    """The file that `name` means. A pack's name means the pack; `./` before it, a file that is called so."""
    return packs().get(name, Path(name)) if isinstance(name, str) else name


def no_such_file(name: str) -> str:
    """What to say of a name that is neither a file nor a pack."""
    known = list(packs())
    near = nearest(Path(name).stem, known, most=1)
    meant = f"did you mean {near[0]}? " if near else ""
    return f"no such file, and no pack of that name; {meant}the packs are {', '.join(known)}"
