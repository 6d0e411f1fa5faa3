"""Where the input of a log goes, and its dearest blocks."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from ctxdoc.ledger.ledger import Ledger
from ctxdoc.outputs.numbers import money_text, share_text
from ctxdoc.outputs.report import Part, Table
from ctxdoc.reports.blocks import kind_name, kinds_of, label_of, unused_names

SHOWN_BLOCKS = 8


def block_tables(replay: Ledger, excerpts: bool) -> Iterator[Part]:
    """Tables of the kinds of blocks and of the dearest blocks; none where no body is known."""
    blocks = replay.blocks
    if not blocks:
        return
    kinds = kinds_of(blocks)
    whole = sum((kind.cost or Decimal(0) for kind in kinds), Decimal(0))
    yield Table(
        "Where the input goes",
        ("part", "blocks", "tokens sent", "cost", "share"),
        tuple(
            (
                kind.name,
                f"{kind.count:,}",
                f"{kind.tokens:,}",
                money_text(kind.cost) + (" and more" if kind.unpriced and kind.cost else ""),
                "-" if kind.cost is None else share_text(kind.cost, whole),
            )
            for kind in kinds
        ),
    )
    unused = unused_names(replay)
    rows = []
    for block in blocks.first(SHOWN_BLOCKS):
        kind, label = kind_name(block), label_of(block, excerpts=excerpts)
        never = " (never called)" if kind == "tool definitions" and label in unused else ""
        rows.append(
            (
                f"{block.tokens:,}",
                f"{block.times:,}",
                f"{block.lifetime_tokens:,}",
                money_text(block.cost),
                block.segment.pointer,
                f"{label}{never}",
            )
        )
    yield Table(
        "Dearest blocks over their life",
        ("tokens", "sent", "in all", "cost", "JSON path", "what"),
        tuple(rows),
    )
