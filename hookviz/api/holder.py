"""What holds the tables of a trace, so that its user sees none of them."""

from hookviz.trace import TraceData


class TableHolder:
    """Keeps the tables of a trace behind one private attribute; the parts of ``Trace`` read them there."""

    def __init__(self, data: TraceData | None = None) -> None:
        self._tables = TraceData() if data is None else data

    @property
    def _data(self) -> TraceData:
        """The tables, with all rows expanded once the recording is over."""
        self._tables.expand()
        return self._tables
