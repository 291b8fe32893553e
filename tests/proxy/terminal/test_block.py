"""A block of lines at the end of a terminal, drawn in place."""

from __future__ import annotations

import io

from support.screen import Screen

from proxy.terminal.block import Block


class Terminal:
    """What was written, as a terminal shows it; its size can be changed."""

    def __init__(self, columns: int = 20) -> None:
        self.out = io.StringIO()
        self.columns = columns
        self.block = Block(self.out, lambda: (self.columns, 24))

    def draw(self, *lines: str, above: tuple[str, ...] = ()) -> None:
        self.block.draw([(line, line) for line in lines], above)

    @property
    def lines(self) -> list[str]:
        return Screen(self.columns).write(self.out.getvalue()).lines


def test_a_block_takes_the_place_of_the_one_before() -> None:
    terminal = Terminal()
    terminal.out.write("before\n")
    terminal.draw("one", "two", "three")
    terminal.draw("1", "2")
    assert terminal.lines == ["before", "1", "2"]


def test_what_is_above_stays_and_the_block_goes_on_below_it() -> None:
    terminal = Terminal()
    terminal.draw("one", "two")
    terminal.draw("one", "2", above=("done",))
    terminal.draw("3", above=("done too", "and this"))
    assert terminal.lines == ["done", "done too", "and this", "3"]


def test_a_block_that_is_taken_away_leaves_the_cursor_where_it_began() -> None:
    terminal = Terminal()
    terminal.draw("one", "two", above=("done",))
    terminal.block.clear()
    terminal.block.clear()
    terminal.out.write("after\n")
    assert terminal.lines == ["done", "after"]


def test_a_block_whose_lines_a_narrower_terminal_has_broken_is_taken_away_whole() -> None:
    """A terminal that is made narrower shows a line of 20 columns in three rows of 8."""
    terminal = Terminal(8)
    terminal.out.write("before\n")
    terminal.columns = 20
    terminal.draw("a" * 20, "bb", "c" * 9)
    terminal.columns = 8
    terminal.draw("new")
    assert terminal.lines == ["before", "new"]


def test_wide_characters_take_two_columns_of_a_broken_line() -> None:
    terminal = Terminal(6)
    terminal.out.write("before\n")
    terminal.columns = 20
    terminal.draw("图书馆预约", "x")
    terminal.columns = 6
    terminal.draw("new")
    assert terminal.lines == ["before", "new"]


def test_nothing_is_written_for_a_block_that_was_never_drawn() -> None:
    terminal = Terminal()
    terminal.block.clear()
    assert terminal.out.getvalue() == ""
