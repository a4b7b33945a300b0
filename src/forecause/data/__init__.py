"""The data station: from any table to a checked Panel, and from a Panel to windows."""

from forecause.data.panel import Panel, Scale
from forecause.data.windows import Windows

__all__ = ["Panel", "Scale", "Windows"]
