"""Keys from a terminal that need not speak UTF-8: what can't be decoded must not end the console."""

from __future__ import annotations

import os
import select
from codecs import getincrementaldecoder

from textual._xterm_parser import XTermParser
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver

WAIT_S = 0.1
CHUNK = 4096  # bytes


class Keyboard(LinuxDriver):
    """A byte that isn't UTF-8 (a Latin-1 paste, a broken meta key) comes as U+FFFD, so that it is seen."""

    def run_input_thread(self) -> None:
        """Textual's own thread, whose decoder raises at such a byte, does the same otherwise."""
        decode = getincrementaldecoder("utf-8")(errors="replace").decode
        parser = XTermParser(self._debug)
        while not self.exit_event.is_set():
            if select.select([self.fileno], [], [], WAIT_S)[0]:
                data = os.read(self.fileno, CHUNK)
                if not data:
                    return  # a hang-up: `Audience` sees it too
                for event in parser.feed(decode(data)):
                    self.process_message(event)
            for event in parser.tick():  # an escape that nothing followed is a key
                self.process_message(event)


def with_keyboard(driver: type[Driver]) -> type[Driver]:
    """The driver that textual has chosen, but `Keyboard` for a terminal: a browser's speaks UTF-8."""
    return Keyboard if driver is LinuxDriver else driver
