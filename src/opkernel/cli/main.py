"""The entry point of the `opkernel` command."""

import gc
import signal


def main() -> None:
    """Run the command line.

    Until everything is loaded Ctrl-C ends the process at once: NumPy does not survive a
    KeyboardInterrupt while it is imported. The garbage collector rests as long.
    """
    gc.disable()
    is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from opkernel.cli.commands import commands

    if is_ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    commands(obj=True)  # a process of its own
