"""The command line: one file a command, loaded when it is called. Imports api and what lies below."""

import gc

# Loading makes thousands of objects and no garbage, which the collector would walk over again and
# again: 8 ms of every start. It still runs, so that memory stays bounded; only less often.
gc.set_threshold(50_000, 20, 20)
