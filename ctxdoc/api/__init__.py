"""ctxdoc for Python, one function a file, handed out by `ctxdoc` itself. Imports reports and what lies below.

    import ctxdoc

    found = ctxdoc.replay("agent.jsonl")
    found.totals.lost.amount
    frame = pandas.DataFrame(found.rows)

Logs are paths (`-` is standard input), or one log that `ctxdoc.read` has read. Parameters are called as the
options of the commands and mean the same; messages name the option. Four are the same everywhere: `model` takes
this model's rules and prices instead of the log's; `strict` fails on the first record that cannot be read;
`count_tokens` lets the API count prompts without counters, True by a counter of its own; `progress` is called
with a title and a total, in bytes or requests, and gives what is called with each step.

Tokens are whole numbers, money is USD (exact Decimals in `totals`, floats in `rows` and `findings`), times are
aware and UTC. What is unknown is None, never 0. Nothing is printed, and no file is written but the counts that
`count_tokens` keeps, by hash; a Python warning says when counting stopped.

Every error that is foreseen is a `ctxdoc.CtxdocError`, with `message` and `hint`. InputError: what cannot be
read or makes no sense; of it UnknownNameError: a name outside of a closed set. NoRequestError: a log without a
usable request. UncheckedError: what a gate could not check. Records that were skipped stand in its notes.
"""
