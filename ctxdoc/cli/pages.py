"""Pages on topics; the page of a part (cause, format, strategy, placement …) is the docstring of its file."""

from __future__ import annotations

TOPICS = {
    "steps": """The three steps of a diagnosis, cheapest first

  1 double send   Was the same request sent twice, and did the second sending read the cache? Taken
                  from the log where it holds a repeat, otherwise from the cache model.
  2 counters      What was read and written. Read > 0 and the rest appended: alive. Read 0,
                  written > 0: dead, or the first request. Both 0: never cached. Read less than was
                  there: partial.
  3 diff          Only when the first two leave a question: the first differing byte, by three
                  comparisons. Only the last one is what the cache sees.""",
    "origins": """Where a number comes from

  reported     the API's own counters
  calibrated   shared out between reported counters, or inside a prompt that the API has counted
               (--count-tokens), by the weight of each block
  estimated    made from characters: no counter was there (±25 %)
  simulated    what the cache model computes

  Step 1 is "recorded" where the log holds the same prompt twice, and "replayed" where the cache model
  answers what a second sending would read.""",
    "evidence": """What is believed, and how sure a cause can be

  order        The API's own word in the answer and its counters; what the log states (ids, times, order,
               headers); the bodies; the cache model; an assumption. A later one never outweighs an
               earlier one, and no number changes its origin on the way.
  counters     of one pass over the prompt tell exact sizes, and what was read and written. Sums over
               several passes (tools that the API ran) tell money only.
  miss         Prefix that an earlier request had cached, that the later one shares, in time and at the same
               place, and that it did not read. Never more than was cached, nor where as much was read.
  compared     Two requests are compared where one can go on from the other: the log says so, or they share
               at least the model's minimum, or more than one short message. Files of a folder without
               times, other clients and other days are not.
  certain      The API says it; or both bodies show it, both counters and the times are known, and the model
               reads what was read.
  likely       One of these is missing or assumed, and a rule of the vendor fits.
  possible     It fits, and so do others; or nobody documents it.""",
    "rules": """The cache rules that ctxdoc applies (prompt-caching page, 2026-10-08)

  The prompt is compared byte by byte in render order: tools, system, messages. An entry is
  written only at a breakpoint (cache_control), for the whole prefix up to it. A breakpoint looks 20
  positions back for an earlier write, itself included; a run of tool_use or of tool_result blocks is
  one position. At most 4 breakpoints; 1h ones before 5m ones. An entry lives 5 minutes or an hour
  from the start of the request that wrote or read it, and can be read once that response has
  begun. Below the model's minimum nothing is cached, without an error.""",
    "replay": """The words of a replay

  miss       Prefix that was cached and could have been read, but was not. Its price is what the
             request would have cost less, had it been read. A compaction is a miss that is not
             avoidable; "unknown" stands where the log has no bodies to tell.
             Where as much was read as the request before had read and written, there is none.
  waste      Money that is lost although nothing cached was missed: history behind the last
             breakpoint, or no breakpoint at all, is paid in full each time; text that all users send
             stands behind what is each one's own.
  pauses     What was lost to pauses over the lifetime of an entry, and what an hour's lifetime or a
             keep-alive would have cost and saved over the same log.
  oracle     The least that caching can do for the prompts as they were sent: what is sent again is
             written once, nothing expires, breakpoints are free; below the model's minimum nothing
             is cached. Prompts with a fault mended can cost less than that.
  check      How many requests the cache model reproduces: what it reads, writes and pays in full is
             within 3 % or 20 tokens of the reported counters. Requests that calls outside of the log
             had warmed are counted apart, and those of several passes (server tools).
  growth     Turn k of a stretch sends about P + a·k tokens: P is where the line of least squares
             begins, a what each turn adds, R² how well the line fits. n turns send n·P + a·n²/2 by the
             law, n·P + a·n(n+1)/2 exactly. From turn 2·P/a on more than half of it is history that is
             sent again. A stretch ends where the prompt falls: a compaction, a clearing, another
             prefix. Where the line does not fit, its largest error is shown and nothing is foretold.
  counting   Faults of the log itself: cached tokens that it counts twice, a cost that a tracker got
             wrong. The reported numbers stay; the corrected sum stands beside them.
  block      One tool definition, system block, message block or image. Its cost over its life is its
             share of what every request that held it read, wrote and paid in full.
  lost       In the list of what to do: money that was for nothing. "These cost" stands for blocks
             that may be needed. The amounts overlap.""",
    "gate": """What the gate holds, and how it is set

  stable_prefix        A log breaks it when an avoidable miss has one of the causes that nobody decides on:
                       tools in another order, a time in the prefix, another key order … Moved
                       breakpoints, appended turns and sampling settings never do. Other causes are
                       told; --fail-on CAUSE breaks on them, --allow CAUSE lets one pass. What the first
                       request of a conversation does not share with another conversation breaks it only
                       where they all begin with another time, id or order: several agents are no fault.
                       A builder breaks it when anything ahead of its last breakpoint differs between
                       two runs. Only another day is told and breaks nothing.
  min_hit_ratio        share of all input that is read from the cache
  max_lost_cost        USD of avoidable misses
  max_lost_tokens      tokens of the same
  max_prefix_tokens    P of the growth law: tools and system prompt
  max_growth_per_turn  a of the growth law
  baseline             A lock file: hashes and sizes of the blocks of each stable prefix, no text. Of a log
                       it is tools, system prompt and settings of the request that begins each thread; of
                       a builder all ahead of the last breakpoint. Its tokens are estimates, so that they
                       depend on nothing but the text.

  Settings stand in [tool.ctxdoc.gate] of the next pyproject.toml: the names above, and logs, command,
  import, allow, fail-on, skip, timeout. Options go before them; paths in the file start from its folder.

  A builder is run as it is, then a few times with everything changed at once; when that is not the same,
  each surrounding alone, and the builder twice more with nothing changed.
  The surroundings: pause (a second of time), hash_seed (PYTHONHASHSEED 1 to 4; 0 at first),
  working_folder (links to all that is in it), home, time_zone (east and west), locale,
  environment_order, clock and day. The last two need libfaketime; without it a clock of minutes in UTC is
  not seen, and the report says so. --skip NAME leaves one out.

  Verdicts: held (exit code 0), broken (1), unchecked (3): a builder that fails, a log of one request, a
  limit that the log does not tell, a baseline that is not there yet. Unchecked is never held.""",
    "record": """How requests are recorded

  ctxdoc record starts a proxy on loopback and tells the program behind -- where it is:
    ANTHROPIC_BASE_URL   the Anthropic SDKs of all languages, Claude Code, pydantic-ai, most agents
    ANTHROPIC_API_URL    langchain-anthropic
    ANTHROPIC_API_BASE   litellm
  A client that reads none of them is given its base URL in its own settings: run ctxdoc record --listen --port
  8787 and set http://127.0.0.1:8787. Clients of the AI SDK want /v1 behind it.

  Inside of a program, without a proxy:
    from ctxdoc.record import recorder
    client = anthropic.Anthropic(middleware=[recorder("agent.jsonl")])
  and for clients on httpx without that hook:
    from ctxdoc.record import transport
    http_client = httpx.Client(transport=transport("agent.jsonl", httpx.HTTPTransport()))

  What is written   One line for each exchange when its answer has ended: body, answer, counters, status,
                    duration. Errors, cut streams and calls of other paths are written as what they were.
  What is not       authorization, x-api-key, cookies, proxy headers, and every other header but those that
                    say where a request went. With --redact text hashes stand for all text, numbers
                    and names of arguments; types, ids and names of tools stay. Equal texts stay equal
                    within one recording, and sizes stay: the log can be shared and is still diagnosed.
  What can fail     A full disk ends the recording, with one message, and no request. A kill loses the exchanges
                    that were under way.""",
    "images": """What images cost (vision page, 2026-08-22)

  tokens     ⌈w/28⌉·⌈h/28⌉ patches, after the API's own resizing: at most 1,568 px a side and 1,568 tokens in
             the standard tier, 2,576 px and 4,784 tokens in the high one, which newer models have.
  steps      Between two multiples of 28 pixels a smaller image costs as much: only sizes that cross
             a step save something.
  life       An image is sent again on every turn: written once, read from the cache later. Dropping it
             afterwards rewrites all that stands behind it; sending it smaller from the start does not.
  PDF        Each page counts as text and as an image; its tokens are a range, estimated.
  limits     8,000 px a side; 2,000 px where a request holds more than 20; 100 images on models with the
             window of 200,000 tokens, 600 on the others; 10 MB as base64 each, 32 MB a request.""",
    "simulate": """The words of a simulation

  strategy   What of the history is sent: keep, trim, window, clear, compact, offload … Each is
             replayed through the same cache and priced alike; `ctxdoc explain clear` is the page of one.
  placement  Where breakpoints stand and how long their entries live. Strategies are compared under
             rolling ones: end of tools, end of system, last message. `recorded` is what was sent, `none`
             is caching off, `oracle` the bound that no placement can beat.
  sent       The baseline: everything kept, with breakpoints, lifetimes and changes of the prefix as the log has
             them; of a transcript as its counters tell them. It is held against the bill, and what sets them
             apart is named. `recorded_5m` and `recorded_1h` change the lifetime alone.
  complete   The cheapest way that takes nothing from the model; choice: the cheapest that hides at most
             --max-unseen of the history; beyond: the lowest number, whatever it hides.
  read       Share of the input that is read from the cache.
  no cache   What the same prompts cost without one. Where this column says cheaper and the other dearer,
             the strategy rewrites more than it saves.
  moved      Tokens that were sent before and are sent again behind a change: they are written anew.
  unseen     Share of the history that is missing at some request. What the model does worse without it
             is not priced.
  rereads    A way pays while less than that share of the tool results and documents that are gone is read
             again: simulated on both sides of it, each by a call of its own whose result stays from then on.
             `+reread:share=0.5` behind any strategy prices a share; what a share reads a larger one reads too.
  front      The ways that no other one beats both in cost and in what is unseen.
  pays       The request from which on it is cheaper in all than keeping everything, to the end.
  formulas   Beside the simulation, for a session of one stretch: turn k sends P + a·k, r and w are the
             read and the write factor. Kept and always warm: w·(P + a·n) + r·((n−1)·P + a·n(n−1)/2).
             Removing d tokens with T behind them pays after (w−r)·T/(r·d) turns. A window of W tokens
             that slides costs more a turn until turn w·(W − a)/(r·a). A compaction is cheapest every
             √(2·C/(r·a)) turns, C being what one costs.
  plan       What is worth writing first: breakpoints, then what hides nothing, then what hides little, each
             simulated beside those ahead of it.
  lifetimes  An entry that is read lives on; the shorter ones ahead of it do not, as it is assumed (--assume).
             After five minutes of a growing conversation the breakpoint at the end of the system prompt is
             gone, and a compaction or a cut writes tools and system prompt again; rolling_1h keeps them.""",
    "exit-codes": """Exit codes

  0    done; every limit of the gate held
  1    done; a limit of the gate is broken, or --exit-code was given and the cache is not alive (a cold one
       is not, either)
  2    nothing was analysed: wrong arguments, an unreadable file, bad settings
  3    nothing was analysed: no usable request in the input; or the gate could not check what it was asked to
  70   a fault in ctxdoc itself""",
}
"""Name → page; the first line is its title."""
