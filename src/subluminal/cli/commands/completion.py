"""`sub completion SHELL`: prints the script with which a shell completes our commands."""

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.errors import ExitCode

EXAMPLE = """sub completion bash > ~/.local/share/bash-completion/completions/sub
sub completion zsh > ~/.zfunc/_sub
sub completion fish > ~/.config/fish/completions/sub.fish"""

_SCRIPTS = {
    "bash": """_sub() {
  local IFS=$'\\n'
  COMPREPLY=($(compgen -W "$(sub __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)" \\
    -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _sub sub
""",
    "zsh": """#compdef sub
_sub() {
  local -a candidates
  candidates=(${(f)"$(sub __complete ${words[2,CURRENT]} 2>/dev/null)"})
  compadd -a candidates || _files
}
compdef _sub sub
""",
    "fish": """function __sub_complete
  set -l words (commandline -opc) (commandline -ct)
  sub __complete $words[2..-1] 2>/dev/null
end
complete -c sub -a '(__sub_complete)'
""",
}


def add_arguments(parser: Parser) -> None:
    parser.add_argument("shell", choices=list(_SCRIPTS), help="which shell")


def run(args: Args, out: Output) -> int:
    out.data(_SCRIPTS[args.shell].encode())
    return ExitCode.OK
