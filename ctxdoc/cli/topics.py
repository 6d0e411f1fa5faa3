"""Pages on what is no cause and no format."""

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
  calibrated   shared out between reported counters, by the weight of each block
  estimated    made from characters: no counter was there (±25 %)
  simulated    what the cache model computes

  Step 1 is "recorded" where the log holds the same prompt twice, and "replayed" where the cache model
  answers what a second sending would read.""",
    "rules": """The cache rules that ctxdoc applies (prompt-caching page, 2026-10-08)

  The prompt is compared byte by byte in render order: tools, system, messages. An entry is
  written only at a breakpoint (cache_control), for the whole prefix up to it. A breakpoint looks 20
  positions back for an earlier write, itself included; a run of tool_use or of tool_result blocks is
  one position. At most 4 breakpoints; 1h ones before 5m ones. An entry lives 5 minutes or an hour
  from the start of the request that wrote or read it, and can be read once that response has
  begun. Below the model's minimum nothing is cached, without an error.""",
    "exit-codes": """Exit codes

  0    done
  1    done, and --exit-code was given and the cache is not alive (a cold one is not, either)
  2    nothing was analysed: wrong arguments or an unreadable file
  3    nothing was analysed: no usable request in the input
  70   a fault in ctxdoc itself""",
}
"""Name → page; the first line is its title."""
