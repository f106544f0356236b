"""Explanations of plans as tables, in text and HTML."""

from __future__ import annotations

import abc
import io
from collections.abc import Sequence
from typing import Protocol

from clsparse_py._ground.records import dataclass

__all__ = ["Explained", "Shown", "Table", "plan_as_html"]


@dataclass(frozen=True)
class Table:
    """A table, and below it the reason of the decision.

    Attributes
    ----------
    title : str
    columns : sequence of str
        Heads of the columns.
    rows : sequence of sequences of str
    rule : str
        The reason of the decision; "" if nothing was decided.
    numbers : str
        The head of the column that is aligned at its right.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    rule: str = ""
    numbers: str = ""

    def as_text(self) -> str:
        """Return the table as text for a terminal."""
        # `rich` is imported here, as all processes import the package and few show tables.
        import rich.box
        from rich.table import Table as RichTable

        from clsparse_py._ground.console import make_console

        table = RichTable(title=self.title, box=rich.box.SIMPLE)
        for column in self.columns:
            table.add_column(column, justify="right" if column == self.numbers else "left", overflow="fold")
        for row in self.rows:
            table.add_row(*row)
        text = io.StringIO()
        # The text of the table has no colours, whatever the environment says of terminals.
        console = make_console(file=text, width=140, force_terminal=False, color_system=None)
        console.print(table)
        if self.rule:
            console.print(f"Decided: {self.rule}", soft_wrap=True)
        return text.getvalue().rstrip()

    def as_html(self) -> str:
        """Return the table as HTML for a notebook."""

        def line(tag: str, cells: Sequence[str]) -> str:
            """Return a row of the table in HTML: cells of the tag ``th`` (headings) or ``td`` (values)."""
            return f"<tr>{''.join(f'<{tag}>{_escape(cell)}</{tag}>' for cell in cells)}</tr>"

        caption, head = f"<caption>{_escape(self.title)}</caption>", f"<thead>{line('th', self.columns)}</thead>"
        body = f"<tbody>{''.join(line('td', row) for row in self.rows)}</tbody>"
        rule = f"<p>Decided: {_escape(self.rule)}</p>" if self.rule else ""
        return f"<table>{caption}{head}{body}</table>{rule}"


class Shown(abc.ABC):
    """An object that terminals and notebooks show as a table. Records that inherit say ``__repr__ = Shown.__repr__``."""

    @property
    @abc.abstractmethod
    def table(self) -> Table:
        """The table that terminals and notebooks show for the object."""

    def __repr__(self) -> str:
        return self.table.as_text()

    def _repr_html_(self) -> str:
        """Return the table of the object as HTML for a notebook."""
        return self.table.as_html()


def _escape(text: str) -> str:
    """Return a text with the characters escaped that HTML reserves, such as "<"."""
    # The module `html` is imported here, as few processes show tables.
    import html

    return html.escape(text)


class Explained(Protocol):
    """A plan that explains its decisions."""

    def explain(self) -> Shown:
        """Return the plan's decisions and the reasons for them, as a table."""


def plan_as_html(plan: Explained) -> str:
    """Return a plan as HTML: its text, and the table of its decisions. Plans say ``_repr_html_ = plan_as_html``."""
    return f"<p>{_escape(repr(plan))}</p>{plan.explain()._repr_html_()}"
