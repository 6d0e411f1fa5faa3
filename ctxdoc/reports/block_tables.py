"""Where the input of a log goes, and its dearest blocks."""

from __future__ import annotations

from collections.abc import Container, Iterator
from decimal import Decimal

from ctxdoc.ledger.block_costs import Block, Blocks
from ctxdoc.ledger.ledger import Ledger
from ctxdoc.outputs.numbers import money_text, share_text
from ctxdoc.outputs.report import Part, Table
from ctxdoc.reports.blocks import Kind, kind_name, kinds_of, label_of, unused_names

SHOWN_BLOCKS = 8


def block_tables(replay: Ledger, excerpts: bool) -> Iterator[Part]:
    """Tables of the kinds of blocks and of the dearest blocks; none where no body is known."""
    if replay.blocks:
        yield _kinds_table(replay.blocks)
        yield _dearest_table(replay, excerpts)


def _kinds_table(blocks: Blocks) -> Table:
    kinds = kinds_of(blocks)
    whole = sum((kind.cost or Decimal(0) for kind in kinds), Decimal(0))
    return Table(
        "Where the input goes",
        ("part", "blocks", "tokens sent", "cost", "share"),
        tuple(_kind_cells(kind, whole) for kind in kinds),
    )


def _kind_cells(kind: Kind, whole: Decimal) -> tuple[str, ...]:
    # What has no price is not in the sum: the sum alone would look like all of it.
    more = " and more" if kind.unpriced and kind.cost else ""
    share = "-" if kind.cost is None else share_text(kind.cost, whole)
    cost = money_text(kind.cost) + more
    return kind.name, f"{kind.count:,}", f"{kind.tokens:,}", cost, share


def _dearest_table(replay: Ledger, excerpts: bool) -> Table:
    unused = unused_names(replay)
    shown = replay.blocks.first(SHOWN_BLOCKS)
    return Table(
        "Dearest blocks over their life",
        ("tokens", "sent", "in all", "cost", "JSON path", "what"),
        tuple(_block_cells(block, unused, excerpts) for block in shown),
    )


def _block_cells(block: Block, unused: Container[str], excerpts: bool) -> tuple[str, ...]:
    kind, label = kind_name(block), label_of(block, excerpts=excerpts)
    never = " (never called)" if kind == "tool definitions" and label in unused else ""
    return (
        f"{block.tokens:,}",
        f"{block.times:,}",
        f"{block.lifetime_tokens:,}",
        money_text(block.cost),
        block.segment.pointer,
        f"{label}{never}",
    )
