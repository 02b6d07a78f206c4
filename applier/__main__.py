"""Where `binlag` and `python -m applier` begin: signals are heard before anything else is imported.

A signal that comes while the command line is imported waits for it: what ends the program then is
what ends it later, in the same words. Earlier still Python itself is starting. There Ctrl-C ends
with a traceback of Python's own and SIGTERM without a word, and no program can change that.
"""

import gc

# Built into Python. The module signal around it is another file to read, and imports enum.
from _signal import SIG_IGN, SIGHUP, SIGINT, SIGTERM, getsignal, signal


def main() -> None:
    """Runs the command line and ends the process with its exit code."""
    heard = []

    def hear(number: int, frame: object) -> None:
        heard.append(number)

    for number in (SIGINT, SIGTERM, SIGHUP):
        if number != SIGHUP or getsignal(number) != SIG_IGN:  # nohup
            signal(number, hear)
    from applier.garbage import no_cycle_collection

    with no_cycle_collection():
        from applier.cli.main import main as command_line

    try:
        command_line(interrupted=lambda: bool(heard))
    finally:
        gc.freeze()  # the end of the process need not look for cycles in all that there is


if __name__ == "__main__":
    main()
