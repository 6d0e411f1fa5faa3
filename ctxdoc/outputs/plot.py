"""Charts as pictures: the context strip above its cost, lines of strategies, fields of a grid."""

from __future__ import annotations

import io
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

from ctxdoc.outputs.report import Bar, Chart, Curves, Dot, Front, Heat, Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PARTS = (
    ("read", "read from the cache", "#56B4E9", ""),
    ("written", "written to the cache", "#E69F00", "///"),
    ("uncached", "paid in full", "#D55E00", "xxx"),
)
"""Colours that people with any colour vision tell apart (Okabe and Ito, 2008), and hatches for who
sees none."""
LINES = ("#999999", "#0072B2", "#009E73")
DASHES = ("--", "-", ":")
CURVES = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
CURVE_DASHES = ("-", "--", ":", "-.")
MARKERS = "v^sDPX*o"
MOST_CAUSES = 7
"""Causes with a marker of their own; the rarer ones share the last."""
OTHERS = "other causes"
INK, GRID, PAPER = "#1b1f24", "#c9ced6", "#ffffff"
WIDTH, HEIGHT, DPI = 8.0, 6.0, 100
"""Inches and dots: 800 x 600 pixels."""
FRONT_HEIGHT = 3.0
TITLE = 96
"""Characters of a line of a title."""
LABEL = 52
"""Characters of a label's line: two of them stand beside each other."""
HATCHED = 60
"""Bars up to which hatches can be seen."""


def write_picture(chart: Picture, kind: str) -> bytes:
    """The picture as the bytes of a `png` or an `svg` file; the same chart gives the same bytes."""
    import matplotlib

    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    settings: Any = {
        "font.size": 9,
        "font.family": "DejaVu Sans",
        "svg.fonttype": "none",
        "svg.hashsalt": "ctxdoc",
        "hatch.linewidth": 0.4,
    }
    settings |= dict.fromkeys(
        ("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.edgecolor"), INK
    )
    stream = io.BytesIO()
    with matplotlib.rc_context(settings):
        figure = _figure(chart)
        names = ("Date", "Creator", "Format", "Type") if kind == "svg" else ("Software",)
        figure.savefig(stream, format=kind, dpi=DPI, facecolor=PAPER, metadata=dict.fromkeys(names))
    return stream.getvalue()


def _figure(chart: Picture) -> Figure:
    match chart:
        case Chart():
            return _strip_figure(chart)
        case Curves():
            return _curves_figure(chart)
        case Heat():
            return _heat_figure(chart)


def _curves_figure(chart: Curves) -> Figure:
    """Panels of lines, each line named once, below the last panel."""
    from matplotlib.figure import Figure

    height = HEIGHT if chart.front is None else HEIGHT + FRONT_HEIGHT
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    upper: Any = figure
    if chart.front is not None:
        parts: Any = figure.subfigures(2, 1, height_ratios=(HEIGHT, FRONT_HEIGHT))
        upper, lower = parts
        _draw_front(lower.subplots(), chart.front)
    panels = upper.subplots(len(chart.panels), 1, sharex=True, squeeze=False)
    for row, panel in zip(panels, chart.panels, strict=True):
        axes = row[0]
        for index, curve in enumerate(panel.curves):
            color = CURVES[index % len(CURVES)]
            dash = CURVE_DASHES[index % len(CURVE_DASHES)]
            mark = "o" if chart.steps and len(curve.xs) <= HATCHED else None
            axes.plot(
                curve.xs, curve.ys, ls=dash, color=color, lw=1.6, marker=mark, ms=3,
                label=curve.label,
            )  # fmt: skip
        axes.set_ylabel(panel.label)
        axes.set_ylim(bottom=0)
        _dress(axes)
        tops = [max(curve.ys, default=0.0) for curve in panel.curves]
        axes.yaxis.set_major_formatter(
            _dollars(max(tops, default=0.0)) if panel.unit == "USD" else _thousands
        )
    lowest = panels[-1][0]
    lowest.set_xlabel(chart.axis)
    lowest.xaxis.set_major_formatter(_thousands)
    handles, labels = panels[0][0].get_legend_handles_labels()
    if len(labels) > 1:
        wrapped = [fill(label, LABEL) for label in labels]
        upper.legend(
            handles, wrapped, loc="outside lower center", ncols=2, frameon=False, fontsize=8
        )
    figure.suptitle(fill(chart.title, TITLE), fontsize=11)
    return figure


def _draw_front(axes: Axes, front: Front) -> None:
    """Dots of cost over what is hidden, and the line of those that none beats."""
    from matplotlib.ticker import MultipleLocator

    keep = max((dot.cost for dot in front.dots if dot.is_keep), default=0.0)
    shown = [dot for dot in front.dots if dot.cost <= FAR * keep]
    top = max((dot.cost for dot in shown), default=keep) * 1.1
    best = sorted((dot for dot in shown if dot.on_front), key=lambda dot: dot.unseen)
    axes.plot([d.unseen for d in best], [d.cost for d in best], color=GRID, lw=1.2, zorder=1)
    axes.axvline(front.limit, color=GRID, ls=":", lw=1.2, zorder=1)
    _draw_dots(axes, shown, top)
    left = len(front.dots) - len(shown)
    more = f"; {left} dearer ones lie above" if left else ""
    axes.set_xlabel(f"share of the history that is hidden (dotted: the limit){more}")
    axes.set_ylabel("USD in all")
    _dress(axes)
    axes.set_xlim(left=-0.02, right=max((dot.unseen for dot in shown), default=0.0) * 1.2 + 0.05)
    axes.set_ylim(bottom=0, top=top)
    axes.xaxis.set_major_locator(MultipleLocator(0.1))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.yaxis.set_major_formatter(_dollars(top))


def _draw_dots(axes: Axes, dots: Sequence[Dot], top: float) -> None:
    """Each way in the colour of its curve; those that matter by their names, which never lie on each other."""
    named: list[Dot] = []
    for dot in sorted(dots, key=lambda dot: (not dot.is_keep, not dot.on_front, dot.cost)):
        matters = dot.on_front or dot.is_keep
        color = GRID if dot.curve is None else CURVES[dot.curve % len(CURVES)]
        mark = "s" if dot.is_keep else "o"
        axes.plot([dot.unseen], [dot.cost], marker=mark, color=color, ms=7 if matters else 4, ls="")
        if matters and all(_is_apart(dot, other, top) for other in named):
            named.append(dot)
            axes.annotate(
                dot.label, (dot.unseen, dot.cost), xytext=(5, 5), textcoords="offset points", fontsize=8
            )  # fmt: skip


FAR = 1.6
"""Times what keeping everything costs, from which on a way is too dear to be drawn to scale."""


def _is_apart(one: Dot, two: Dot, top: float) -> bool:
    return abs(one.unseen - two.unseen) > 0.12 or abs(one.cost - two.cost) > 0.08 * top


def _heat_figure(chart: Heat) -> Figure:
    """A field for each pair of values, with its cost written in it."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
    axes = figure.subplots()
    shown = axes.imshow(chart.values, cmap="cividis_r", aspect="auto")
    axes.set_xticks(range(len(chart.columns)), chart.columns)
    axes.set_yticks(range(len(chart.rows)), chart.rows)
    axes.set_xlabel(chart.across)
    axes.set_ylabel(chart.down)
    every = [value for row in chart.values for value in row]
    middle = (min(every) + max(every)) / 2
    # Neighbours differ by little.
    write = _dollars(max(every) / 100)
    if len(every) <= HATCHED:
        for y, row in enumerate(chart.values):
            for x, value in enumerate(row):
                ink = PAPER if value > middle else INK
                axes.text(x, y, write(value, 0), ha="center", va="center", color=ink, fontsize=8)
    figure.colorbar(shown, ax=axes, label="USD in all", format=write)
    figure.suptitle(fill(chart.title, TITLE), fontsize=11)
    return figure


def _strip_figure(chart: Chart) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
    heights = [5, 3] if chart.lines else [1]
    panels = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights, squeeze=False)
    strip = panels[0][0]
    _draw_strip(strip, chart)
    origin = f" ({chart.origin})" if chart.origin else ""
    figure.suptitle(f"{chart.title}{origin}", fontsize=11)
    if chart.lines:
        _draw_lines(panels[1][0], chart)
    each = f", the mean of {chart.each} a bar" if chart.each > 1 else ""
    panels[-1][0].set_xlabel(f"request, in time order{each}")
    return figure


def _draw_strip(axes: Axes, chart: Chart) -> None:
    at = [bar.at for bar in chart.bars]
    width = 0.86 * chart.each
    floor = [0.0] * len(at)
    for name, label, color, hatch in PARTS:
        heights = [getattr(bar, name) for bar in chart.bars]
        shown = hatch if len(at) <= HATCHED else ""
        edge = PAPER if len(at) <= HATCHED else "none"
        axes.bar(
            at, heights, width, floor, label=label, color=color, hatch=shown, edgecolor=edge, lw=0.3
        )
        floor = [one + two for one, two in zip(floor, heights, strict=True)]
    _draw_laws(axes, chart.bars)
    _draw_marks(axes, chart.bars, floor)
    axes.set_ylabel("tokens of the prompt")
    axes.set_ylim(0, max(floor, default=0) * 1.12 or 1)
    axes.set_xlim(0.4, max(at, default=1) + 0.6 * chart.each)
    _dress(axes)
    axes.yaxis.set_major_formatter(_thousands)
    _name_parts(axes)


def _name_parts(axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    # The parts of a bar first: matplotlib puts lines ahead of them.
    first = [label for _, label, _, _ in PARTS]
    order = sorted(range(len(labels)), key=lambda i: (labels[i] not in first, i))
    axes.legend(
        [handles[i] for i in order],
        [labels[i] for i in order],
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=3 if len(labels) > 4 else 2,
        frameon=False,
        fontsize=8,
    )


def _draw_laws(axes: Axes, bars: Sequence[Bar]) -> None:
    """A line through the requests of each stretch, those of others left out."""
    lines: defaultdict[int, list[tuple[float, float]]] = defaultdict(list)
    for bar in bars:
        if bar.law is not None:
            lines[bar.stretch].append((bar.at, bar.law))
    for index, points in enumerate(lines.values()):
        xs, ys = zip(*points, strict=True)
        axes.plot(xs, ys, color=INK, lw=1.2, label="" if index else "law: P + a·k")


def _draw_marks(axes: Axes, bars: Sequence[Bar], tops: Sequence[float]) -> None:
    """A marker above each miss, one shape for each cause."""
    counts = Counter(bar.mark for bar in bars if bar.mark)
    named = [cause for cause, _ in counts.most_common(MOST_CAUSES)]
    if len(counts) > MOST_CAUSES:
        named[-1] = OTHERS
    lift = max(tops, default=0) * 0.04
    spots: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for bar, top in zip(bars, tops, strict=True):
        if bar.mark:
            spots[bar.mark if bar.mark in named else OTHERS].append((bar.at, top + lift))
    for index, cause in enumerate(named):
        xs, ys = zip(*spots[cause], strict=True)
        marker = MARKERS[index % len(MARKERS)]
        axes.scatter(xs, ys, s=22, marker=marker, color=INK, label=f"miss: {cause}", zorder=3)


def _draw_lines(axes: Axes, chart: Chart) -> None:
    at = [bar.at for bar in chart.bars]
    for line, color, dash in zip(chart.lines, LINES, DASHES, strict=False):
        label = f"{line.label} ${line.values[-1]:,.4f}"
        axes.plot(at, line.values, color=color, ls=dash, lw=1.8, label=label)
    axes.set_ylabel("USD in all")
    axes.set_ylim(bottom=0)
    _dress(axes)
    top = max((max(line.values, default=0.0) for line in chart.lines), default=0.0)
    axes.yaxis.set_major_formatter(_dollars(top))
    axes.legend(loc="upper left", frameon=False, fontsize=8)


def _dress(axes: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=GRID, lw=0.6)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _dollars(top: float) -> Callable[[float, float], str]:
    """Spells amounts with as many places as the largest one needs."""
    places = 2 if top >= 0.25 else 3 if top >= 0.025 else 4
    return lambda value, _: f"${value:,.{places}f}"


def _thousands(value: float, _: float = 0) -> str:
    return f"{value:,.0f}"
