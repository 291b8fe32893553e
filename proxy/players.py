"""The Sessions of a Run by name. Those that are over do not stay in memory for ever: the log has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, ValuesView

from proxy.sessions import Player

KEPT = 256
"""Sessions that are over and still at hand: what comes late mostly comes soon."""


class Players(Mapping[str, Player]):
    """Sessions by name. `woken` gives one that is over, of a name and attempt, as the log has it.

    Whoever asks for a Session gets it, wherever it is; `values` has those in memory.
    """

    def __init__(self, woken: Callable[[str, int], Player], kept: int = KEPT) -> None:
        self._awake: dict[str, Player] = {}
        self._over: dict[str, int] = {}
        self._woken = woken
        self._kept = kept
        self._full = 2 * kept

    def __contains__(self, name: object) -> bool:
        return name in self._awake or name in self._over

    def __iter__(self) -> Iterator[str]:
        yield from self._awake
        yield from self._over

    def __len__(self) -> int:
        return len(self._awake) + len(self._over)

    def __getitem__(self, name: str) -> Player:
        """Raises KeyError, and LogError where one is over that cannot be read any more."""
        if name not in self._awake:
            self.add(self._woken(name, self._over[name]))
        return self._awake[name]

    def values(self) -> ValuesView[Player]:
        """All that are played, and the last of those that are over."""
        return self._awake.values()

    def add(self, player: Player) -> None:
        """Takes the place of an earlier attempt, if there was one."""
        name = player.row.name
        self._awake.pop(name, None)
        self._over.pop(name, None)
        if len(self._awake) >= self._full:
            self.let_go()
        self._awake[name] = player

    def rest(self, name: str, attempt: int) -> None:
        """The log alone has this Session, which is over."""
        self._over[name] = attempt

    def let_go(self) -> None:
        """Lets the log alone have all Sessions that are over, but for the latest."""
        over = [player for player in self._awake.values() if player.session.over and not player.is_playing]
        for player in over[: -self._kept]:
            self.rest(player.row.name, player.row.attempt)
            del self._awake[player.row.name]
        # Looked for again when as many have come: looking takes as long as there are Sessions.
        self._full = len(self._awake) + self._kept
