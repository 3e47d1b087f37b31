"""For all tests."""

import signal

# A shell ignores Ctrl-C for what it starts in the background, and so would every program that a test starts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
