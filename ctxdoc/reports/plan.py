"""The report on a plan: the changes worth making, what to write for each, and what they save together."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from msgspec import Raw

from ctxdoc.outputs.numbers import change_text, counted, money_json, money_text, share_text
from ctxdoc.outputs.report import Fields, Headline, Notes, Part, Records, Report, Row
from ctxdoc.request import codec
from ctxdoc.request.codec import Json
from ctxdoc.simulation.plan import Plan, Step

SCHEMA = "ctxdoc/plan/1"


def plan_report(plan: Plan, logs: Sequence[str]) -> Report:
    """The report on a plan; `logs` are the paths as they were given."""
    return Report(
        make_parts=lambda: _parts(plan, logs),
        make_data=lambda: _document(plan),
        make_records=lambda: _records(plan),
    )


def plan_rows(plan: Plan, logs: Sequence[str]) -> Iterator[Row]:
    """The steps in a line each, and the command that says how."""
    for number, step in enumerate(plan.steps, start=1):
        yield Row("" if number > 1 else "Plan", f"{number}. {step.recipe.do}{_worth(step, plan)}")
    if plan.steps and logs and "-" not in logs:
        yield Row("", f"ctxdoc simulate {shlex.join(logs)} --plan", is_command=True)


def _parts(plan: Plan, logs: Sequence[str]) -> Iterator[Part]:
    del logs
    yield Headline("PLAN", "plain", _headline(plan))
    for number, step in enumerate(plan.steps, start=1):
        yield Fields(tuple(_step_rows(number, step, plan)))
    yield Notes(
        "Read it so",
        (
            "together: all requests with this step and those above it, simulated; alone: this step by itself",
            "what the model does worse without what is hidden is not priced",
            "make one change, record a log, and replay it before the next one",
        ),
    )


def _headline(plan: Plan) -> str:
    if plan.sent is None:
        return "the model has no price: nothing can be weighed"
    if not plan.steps:
        return (
            "nothing that stays within the limit saves a hundredth; --max-unseen 50% looks further"
        )
    text = counted(len(plan.steps), "change")
    if plan.total is None or plan.total == plan.sent:
        return f"{text}, of {money_text(plan.sent)} that were sent"
    change = change_text(plan.total, plan.sent)
    return f"{text}: {money_text(plan.total)} instead of {money_text(plan.sent)} ({change})"


def _step_rows(number: int, step: Step, plan: Plan) -> Iterator[Row]:
    recipe = step.recipe
    yield Row(f"{number}.", recipe.do, strong=True)
    if recipe.code:
        yield Row("Write", recipe.code, is_command=True)
    if recipe.beta:
        yield Row("Header", f"anthropic-beta: {recipe.beta}")
    if step.alone is not None:
        yield Row("Saves", _saves(step, plan))
    yield Row("Hides", _hides(step))
    yield Row("Shows", recipe.proof)
    if step.id != "mend":
        yield Row("More", f"ctxdoc explain {step.id.partition(':')[0]}", is_command=True)


def _saves(step: Step, plan: Plan) -> str:
    text = f"{money_text(step.alone)} alone"
    if step.together is not None:
        text += f"; together {money_text(step.together)} ({change_text(step.together, plan.sent)})"
    return text


def _worth(step: Step, plan: Plan) -> str:
    if step.together is None:
        return ""
    hides = f", hides {share_text(step.unseen, 1)}" if step.unseen else ""
    return f": {money_text(step.together)} ({change_text(step.together, plan.sent)}{hides})"


def _hides(step: Step) -> str:
    caution = f"; {step.recipe.caution}" if step.recipe.caution else ""
    if not step.unseen:
        return f"nothing of the history{caution}"
    text = f"{share_text(step.unseen, 1)} of the history{caution}"
    if step.pays_below is not None:
        text += f"; pays while less than {share_text(step.pays_below, 1)} of it is read again"
    return text


def _document(plan: Plan) -> dict[str, Json]:
    return {
        "schema": SCHEMA,
        "sent_cost": money_json(plan.sent),
        "cost": money_json(plan.total),
        "steps": [_step_json(step) for step in plan.steps],
    }


def _step_json(step: Step) -> dict[str, Json]:
    recipe = step.recipe
    return {
        "id": step.id,
        "do": recipe.do,
        "code": codec.decode(Raw(recipe.code.encode())) if recipe.code else None,
        "beta": recipe.beta or None,
        "saved_alone": money_json(step.alone),
        "cost_together": money_json(step.together),
        "unseen_share": f"{step.unseen:.4f}",
        "pays_below_share": None if step.pays_below is None else f"{step.pays_below:.4f}",
        "caution": recipe.caution or None,
        "proof": recipe.proof,
    }


def _records(plan: Plan) -> Records:
    columns = ("id", "do", "code", "beta", "saved_alone", "cost_together", "unseen_share", "proof")
    rows = []
    for step in plan.steps:
        found = {**_step_json(step), "code": step.recipe.code or None}
        rows.append(tuple(_cell(found[name]) for name in columns))
    return Records(columns=columns, rows=tuple(rows))


def _cell(value: Json) -> str | int | None:
    return value if isinstance(value, str | int) else None
