"""The tree of all prompts of a log: each beginning that was sent is a node, below the one that is a block
shorter.

What two prompts share is their common node, and a prompt that only appends makes only its new nodes; so
whatever is known of beginnings is held once, as columns over these nodes, and work grows with what is new.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

ROOT = -1
"""The empty beginning."""


class PrefixTree:
    """The nodes, in the order in which they were first sent: a node comes behind its parent."""

    def __init__(self) -> None:
        self._nodes: dict[bytes, int] = {}
        """By the key of a beginning."""
        self.parents = array("l")
        """Of each node, the one that is a block shorter; `ROOT` for the first block."""

    def __len__(self) -> int:
        return len(self.parents)

    def node(self, key: bytes) -> int:
        """The node of a beginning that was sent; raises KeyError for another."""
        return self._nodes[key]

    def known(self, keys: Sequence[bytes]) -> int:
        """How many leading blocks of a prompt were sent before."""
        count = len(keys)
        # Nearly every prompt goes on from one before it: the longest known beginning is near the end.
        while count and keys[count - 1] not in self._nodes:
            count -= 1
        return count

    def grow(self, keys: Sequence[bytes], known: int) -> None:
        """Adds the nodes of a prompt behind those that are known."""
        parent = self._nodes[keys[known - 1]] if known else ROOT
        for key in keys[known:]:
            self.parents.append(parent)
            parent = self._nodes[key] = len(self.parents) - 1

    def sum_up(self, *columns: array[int]) -> None:
        """Adds to each node what all nodes behind it hold, in each of the columns."""
        parents = self.parents
        for node in range(len(parents) - 1, -1, -1):
            above = parents[node]
            if above != ROOT:
                for column in columns:
                    column[above] += column[node]

    def close(self) -> None:
        """Lets go of the keys: nothing can be added or asked after it."""
        self._nodes.clear()
