"""Finding tools by words in their id or description: the filter of a list, no search."""

import asyncio
from collections import OrderedDict

from pegboard.serve.catalogue import View

MAX_VIEWS = 4
"""Views whose texts are held; the one that was filtered longest ago goes first."""


class ToolTexts:
    """The texts of the tools of each view, read when a list of it is first filtered."""

    def __init__(self) -> None:
        self._texts: OrderedDict[View, dict[str, str]] = OrderedDict()
        self._reading = asyncio.Lock()

    async def containing(self, view: View, text: str) -> set[str]:
        """Return the ids of the tools that contain every word of a text, in any case."""
        async with self._reading:
            if view not in self._texts:
                tools = await view.board.list_tools()
                self._texts[view] = {
                    tool.id: f"{tool.id} {tool.name} {tool.description}".casefold()
                    for tool in tools
                }
            self._texts.move_to_end(view)
            texts = self._texts[view]
            if len(self._texts) > MAX_VIEWS:
                self._texts.popitem(last=False)
        words = text.casefold().split()
        return {tool for tool, own in texts.items() if all(word in own for word in words)}
