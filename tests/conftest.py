"""For all tests."""

import gc
import signal

# A shell ignores Ctrl-C for what it starts in the background, and so would every program that a test starts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Hundreds of screens are made and dropped: by its defaults the collector takes a fifteenth of the time.
gc.set_threshold(100_000, 50, 50)
