"""What all commands share: ``key=value`` arguments, ``--help``, ``--print-config``, exit codes."""

import argparse
import contextlib
import itertools
import os
import sys
import textwrap
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from lit_byz import _instructions
from lit_byz._cache import place_matplotlib
from lit_byz._door import here, program, typed
from lit_byz._passwords import without_secrets_of
from lit_byz._quiet import quiet
from lit_byz.cli import answer, saying
from lit_byz.errors import BadRequest, disk_is_full

if TYPE_CHECKING:
    from omegaconf import DictConfig

STORE = "MLFLOW_TRACKING_URI"
LONGEST_LINE, LONGEST_WORD = 2000, 300

Run = Callable[["DictConfig", argparse.Namespace], int | None]


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are ``BadRequest``s, and whose help may be made late."""

    def __init__(self, description: str, late_help: Callable[[], str] | None = None) -> None:
        super().__init__(
            prog=program(),
            description=here(description),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self._late_help = late_help
        self.add_argument("--debug", action="store_true", help="show tracebacks")

    def error(self, message: str) -> NoReturn:
        raise BadRequest(message)

    def format_help(self) -> str:
        if self._late_help is not None:
            self.epilog = self._late_help()
        return super().format_help()


def out_folder(text: str) -> str:
    """An option that names a folder, which may not be there yet; what is no folder is refused."""
    given = Path(text)
    there = next(place for place in (given, *given.absolute().parents) if place.exists())
    if not there.is_dir():
        raise argparse.ArgumentTypeError(f"{there} is a file, not a folder")
    return text


def settings_help() -> str:
    """All groups, options and keys. Made when it is asked for: it needs every component."""
    from lit_byz.config.kept_help import kept_catalogue

    return kept_catalogue()


def command(
    description: str,
    run: Run,
    options: Callable[[argparse.ArgumentParser], None] | None = None,
    argv: Sequence[str] | None = None,
) -> int:
    """Compose the config that the arguments ask for, give it to ``run``, return the exit code.

    ``options`` adds a command's own options to the parser. For ``sys.exit`` in a pipeline.
    """

    def parse_and_run(arguments: Sequence[str]) -> int | None:
        # Here, because commands without a config start several times as fast without it.
        from lit_byz.config.compose import as_written, compose, to_plain

        parser = Parser(description, settings_help)
        parser.add_argument("settings", nargs="*", metavar="key=value", help="see below")
        parser.add_argument(
            "--print-config",
            action="store_true",
            help="print what config= reads back, and stop",
        )
        if options is not None:
            options(parser)
        parsed = parser.parse_intermixed_args(arguments)
        saying.now("reading the settings")
        config = compose(parsed.settings)
        saying.over()
        if parsed.print_config:
            from lit_byz.cli.printed import write_config

            plain = to_plain(config)
            write_config(as_written(plain, parsed.settings), plain)
            return 0
        return run(config, parsed)

    return guarded(parse_and_run, argv)


def guarded(run: Callable[[Sequence[str]], int | None], argv: Sequence[str] | None = None) -> int:
    """Call ``run`` with the arguments; failures become one line and an exit code.

    2 for a bad request, 130 for Ctrl-C, 1 for anything else. ``--debug`` adds the traceback. With
    ``--json`` nothing but the answer gets to standard output.
    """
    arguments = sys.argv[1:] if argv is None else argv
    try:
        _look_here()
        place_matplotlib()
        quiet()
        saying.quietly(_nobody_looks(arguments))
        saying.now("getting ready")
        _instructions.chosen()  # a wrong name is noticed before anything is computed
        with answer.alone() if "--json" in arguments else contextlib.nullcontext():
            return run(arguments) or 0
    except KeyboardInterrupt:
        return _report("interrupted", 130, arguments)
    except SystemExit as stop:
        # A trainer of Lightning's ends so on SIGTERM, with the code of success.
        if type(stop).__name__ != "SIGTERMException":
            raise
        return _report("interrupted", 130, arguments)
    except BadRequest as error:
        notes = getattr(error, "__notes__", ())
        return _report(str(error), 2, arguments, "\n".join(notes))
    except BrokenPipeError:
        # The reader of our output has gone. Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # the last stop: any failure is one line and an exit code
        if disk_is_full(error):
            return _report(_no_space(arguments), 1, arguments)
        text = " ".join(str(error).split())
        kind = type(error).__name__
        text = text if kind == "RunFailed" else f"{kind}: {text}"
        from lit_byz.registry import example_in  # here, because what ends well does without it

        return _report(text, 1, arguments, example_in(error))
    finally:
        saying.over()


def _nobody_looks(arguments: Sequence[str]) -> bool:
    """Whether a command was asked for nothing but its answer."""
    pairs = {f"{one}={other}" for one, other in itertools.pairwise(arguments)}
    quiet = {"--quiet", "--progress=none", "--print-config", "--help", "-h"}
    return bool(quiet & {*arguments, *pairs})


def _look_here() -> None:
    """Find modules in the working directory.

    A user's own class is named by a dotted path that starts where the command is typed. Last, so
    that no file there hides an installed module.
    """
    try:
        here = os.getcwd()  # noqa: PTH109 - sys.path holds strings
    except OSError as error:
        raise BadRequest(f"the working directory cannot be found: {error.strerror}") from error
    if here not in sys.path:
        sys.path.append(here)


def _no_space(arguments: Sequence[str]) -> str:
    """What to do about a full disk. The command is the one that was typed."""
    again = "make some, then the same command goes on"
    return f"no space left on the disk: {again}: {typed(arguments)}"


def _report(message: str, code: int, arguments: Sequence[str], example: str = "") -> int:
    """One line, whatever a message has in it: neither passwords nor what moves a cursor.

    Below it lines of code that show how it would be right, if there is an example.
    """
    known = [*(word.partition("=")[2] or word for word in arguments), os.environ.get(STORE)]
    if "--debug" in arguments:
        sys.stderr.write(printable(without_secrets_of(traceback.format_exc(), *known)))
    text = " ".join(without_secrets_of(message, *known).splitlines())
    words = (_shortened(word, LONGEST_WORD) for word in text.split(" "))
    sys.stderr.write(f"error: {printable(_shortened(' '.join(words), LONGEST_LINE))}\n")
    if example:
        sys.stderr.write(f"for example:\n{textwrap.indent(example, '    ')}\n")
    return code


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most // 2]}[…]{text[-most // 2 :]}"


def printable(text: str) -> str:
    """A text with escapes for characters that no terminal should get."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)
