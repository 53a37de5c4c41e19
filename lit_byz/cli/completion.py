"""Print a script with which a shell completes lit-byz's commands, options and settings.

lit-byz completion bash        in ~/.bashrc:  eval "$(lit-byz completion bash)"
lit-byz completion zsh         in ~/.zshrc, below compinit:  eval "$(lit-byz completion zsh)"
lit-byz completion fish        lit-byz completion fish > ~/.config/fish/completions/lit-byz.fish

Then Tab completes commands, options, groups and their options (rule=, attack=foe@), also inside a
list (clip=[none,a), dotted keys with their few values, and experiments. (zsh takes [ ] for a
pattern: put a list into quotes there, 'clip=[none,arc]'.)
"""

import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from lit_byz.cli.command import Parser, guarded
from lit_byz.errors import BadRequest
from lit_byz.registry import nearest

Word = tuple[str, str]

# Each asks ``lit-byz completion words WORD…`` for lines of a word and, behind a tab, what it is;
# the last WORD is the one to be completed. After one that ends in = or . there is more to type.
BASH = r"""
_lit_byz() {
    local line="${COMP_LINE:0:COMP_POINT}" word start answer plain quotes
    local -a typed
    read -r -a typed <<<"$line"
    [[ "$line" == *[[:space:]] ]] && typed+=("")
    word="${typed[-1]}"
    COMPREPLY=()
    quotes="${word//[^\'\"]/}"
    # With one that is closed again it would replace the word and its quotes.
    [[ -z "$quotes" ]] || (( ${#quotes} % 2 )) || return
    typed=("${typed[@]//[\'\"]/}")
    # bash replaces what follows the open quote of a word, or its last = or :, and not the whole.
    start="${word##*[=:]}"
    [[ -n "$quotes" ]] && start="${word##*[\'\"]}"
    word="${typed[-1]}"
    start="${word%"$start"}"
    while IFS=$'\t' read -r answer _; do
        [[ -n "$answer" ]] || continue
        answer="${answer#"$start"}"
        # Anybody may have named a file $(like this); other words need their brackets as they are.
        if [[ "$word" == @(config|resume)=* ]]; then
            printf -v plain %q "$answer"
            [[ -n "$quotes" && "$plain" != "$answer" ]] && continue
            answer="$plain"
        fi
        COMPREPLY+=("$answer")
    done < <(lit-byz completion words "${typed[@]:1}" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -eq 1 && "${COMPREPLY[0]}" == @(*[=./@]|*\[*) ]]; then
        compopt -o nospace
    fi
}
complete -F _lit_byz lit-byz
"""
ZSH = r"""
#compdef lit-byz
_lit_byz() {
    local answer word
    local -a open closed
    while IFS= read -r answer; do
        word="${answer%%$'\t'*}"
        case "$word" in
            "") ;;
            *[=./@]|*\[*) open+=("$word") ;;
            *) closed+=("$word") ;;
        esac
    # Of an open quote, which (Q) cannot undo, PREFIX has what is inside; it ends at the cursor.
    done < <(lit-byz completion words "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)
    (( $#open )) && compadd -S '' -- "${open[@]}"
    (( $#closed )) && compadd -- "${closed[@]}"
    (( $#open + $#closed ))
}
if [[ "$funcstack[1]" == _lit-byz ]]; then
    _lit_byz "$@"
else
    compdef _lit_byz lit-byz
fi
"""
FISH = r"""
function __lit_byz_words
    # fish takes the quotes off all words but the last, whose one may be open.
    set -l word (string replace -ra "['\"\\\\]" '' -- (commandline -ct))
    set -l typed (commandline -opc) "$word"
    lit-byz completion words $typed[2..-1] 2>/dev/null
end
complete -c lit-byz -f -a '(__lit_byz_words)'
"""
SHELLS = {"bash": BASH, "zsh": ZSH, "fish": FISH}

# What stands behind a command's name, beside settings and options.
REPORT = {
    "list": "the paper's figures and tables",
    "paper": "all of them that have runs",
    "export": "all finished runs as one file",
    "import": "bring a file's runs into the store",
}
CLUSTER = {"up": "start it", "status": "say what answers", "down": "end it"}
DATA = {"fetch": "fetch data sets", "show": "show how labels are distributed"}
# Which settings a command takes: all, or those that begin so.
TAKES = {
    **dict.fromkeys(("train", "sweep", "tune", "init-scaling", "breakdown"), ("",)),
    "data": ("",),
    "report": ("tracking.", "seed", "scale"),
    "evaluate": ("tracking.",),
    "list": ("tracking.",),
    "ui": ("tracking.",),
}
MANY_RUNS = ("sweep", "tune", "init-scaling", "breakdown", "report")
FILES = ("config", "resume")


def complete(typed: Sequence[str]) -> list[Word]:
    """What the last word may become, with what it is, given those before it.

    >>> [word for word, _ in complete(["sweep", "clip=[none,a"])]
    ['clip=[none,arc']
    """
    from lit_byz.cli.door import COMMANDS, DESCRIPTIONS

    *before, word = typed or [""]
    if not before:
        asked = [("--help", "show the commands"), ("--version", "say which this is")]
        every: Iterator[Word] | list[Word] = [*DESCRIPTIONS.items(), *asked]
        every = [pair for pair in every if word.startswith("-") or not pair[0].startswith("-")]
    elif before[0] in COMMANDS:
        every = _words(before[0], before[1:], word)
    else:
        every = []
    return [(each, text) for each, text in every if each.startswith(word)]


def _words(command: str, before: Sequence[str], word: str) -> Iterator[Word]:
    """All that may stand at a place behind a command."""
    from lit_byz.cli.door import COMMANDS
    from lit_byz.cli.flags import flags

    module = COMMANDS[command]
    if command == "benchmark" and before:
        from lit_byz.cli.benchmark import BENCHMARKS

        module = BENCHMARKS.get(before[0], module)
    known = {flag.name: flag for flag in flags(module)}
    if before and before[-1] in known and known[before[-1]].choices:
        yield from ((choice, "") for choice in known[before[-1]].choices)
    elif word.startswith("-"):
        yield from ((flag.name, flag.text) for flag in known.values())
    else:
        yield from _positional(command, before, word)
        if command != "data" or before[:1] == ["show"]:
            for each, text in _settings(command, before, word):
                if each.startswith(TAKES.get(command, ("\0",))):
                    yield each, text


def _positional(command: str, before: Sequence[str], word: str) -> Iterator[Word]:
    from lit_byz.cli import listing

    if command == "report":
        from lit_byz.config.words import experiments

        if not before:
            yield from REPORT.items()
        yield from ((e.name, e.text) for e in experiments() if e.name.startswith("paper/"))
    elif command == "evaluate":
        yield from (("run=", "the run's id"), ("which=final", ""), ("which=best", ""))
    elif command == "data" and before:
        from lit_byz.config.words import options

        if before[0] == "fetch" or len(before) == 1:
            yield from ((option.name, option.text) for option in options("dataset"))
    elif not before:
        if command == "benchmark":
            benchmark = importlib.import_module("lit_byz.cli.benchmark")
            yield from ((name, "") for name in benchmark.BENCHMARKS)
        chosen: dict[str, dict[str, str]] = {"data": DATA, "cluster": CLUSTER}
        chosen |= {"completion": dict.fromkeys(SHELLS, ""), "list": listing.KINDS}
        yield from chosen.get(command, {}).items()


def _settings(command: str, before: Sequence[str], word: str) -> Iterator[Word]:
    """Settings: keys as far as the next dot, or values once there is an equals sign."""
    from lit_byz.config import words

    key, equals, value = word.partition("=")
    if equals:
        # Inside a list, and after a value before, the same values again.
        start = max(value.rfind("["), value.rfind(",")) + 1
        for each, text in _values(key, value):
            yield f"{key}={value[:start]}{each}", text
        return
    if command in MANY_RUNS:
        yield "scale=smoke", "a test of a minute"
    yield "experiment=", "a file of configs/experiment"
    yield "config=", "a YAML file of keys"
    yield from ((f"{group}=", "") for group in words.REGISTRIES)
    for name, field in words.keys().items():
        section, dot, _ = name.partition(".")
        yield (f"{name}=", field.text) if not dot or "." in key else (f"{section}.", "")
    for group in words.REGISTRIES:
        if "." not in key:
            yield f"{group}.", "its arguments"
        elif key.startswith(f"{group}."):
            chosen = _chosen(group, before)
            for option in words.options(group):
                if not chosen or option.name in chosen:
                    yield from ((f"{group}.{name}=", option.name) for name in option.arguments)


def _values(key: str, value: str) -> Iterator[Word]:
    from lit_byz.config import words

    if key in words.REGISTRIES:
        yield from ((option.name, option.text) for option in words.options(key))
        if key == "attack" and "@" in value:
            for strength, text in words.strengths().items():
                yield from ((f"{name}@{strength}", text) for name in ("foe", "alie"))
    elif key == "experiment":
        yield from ((option.name, option.text) for option in words.experiments())
    elif key == "trainer.callbacks":
        yield from ((option.name, option.text) for option in words.callbacks())
    elif key in FILES:
        yield from _files(value)
    else:
        field = words.keys().get(key)
        yield from ((text, "") for text in (words.values(field) if field else []))


def _files(start: str) -> Iterator[Word]:
    """Folders, and files that a setting may name."""
    above = start[: start.rfind("/") + 1]
    folder = Path(above or ".")
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.is_dir() and not path.name.startswith("."):
            yield f"{above}{path.name}/", ""
        elif path.suffix in (".yaml", ".yml", ".ckpt"):
            yield f"{above}{path.name}", ""


def _chosen(group: str, before: Sequence[str]) -> list[str]:
    """The options of a group that stand before."""
    found = [w.partition("=")[2] for w in before if w.startswith((f"{group}=", f"{group}.name="))]
    return [name.partition("@")[0] for name in (found[-1].strip("[]").split(",") if found else ())]


def run(arguments: Sequence[str]) -> int:
    """Do what the arguments ask for; returns the exit code."""
    if arguments[:1] == ["words"]:
        for word, text in dict.fromkeys(complete(arguments[1:])):
            print(f"{word}\t{text}" if text else word)
        return 0
    parser = Parser(__doc__ or "")
    parser.add_argument("shell", help=", ".join(SHELLS))
    shell = parser.parse_args(arguments).shell
    if shell not in SHELLS:
        raise BadRequest(f"unknown shell '{shell}': {nearest(shell, SHELLS)}")
    print(SHELLS[shell].strip())
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    return guarded(run, argv)
