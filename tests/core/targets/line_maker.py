"""Makes shell lines by chance: ordinary ones, nested ones, and damaged ones."""

import random

_WORDS = (
    *("a", "b.py", "src", "-f", "--force", "x=y", "'q r'", '"q r"', "a\\ b", "src/d.py", "*.py"),
    *(
        "$X",
        '"$X"',
        "${X}",
        "$(p0)",
        '"$(p0 1)"',
        "`p2`",
        "$((1+1))",
        "~/f",
        "~",
        "{a,b}",
        "a{b,c}d",
    ),
    *(
        "$HOME",
        '"$HOME/x"',
        "$'a\\tb'",
        "''",
        '""',
        "#c",
        "a#b",
        "!",
        "s*c",
        "?.py",
        "[ab].py",
        "{}",
    ),
    *(
        '"a\\"b"',
        "a'b'c",
        "\\$X",
        "'$X'",
        "%",
        "@",
        "+",
        "=",
        "a=b",
        "--x=~/y",
        "{1..3}",
        "$",
        "\\\n",
    ),
    *("é", "a,b", "*", "<(p0)", "${X:-$(p2)}", "${X:-d}", '"`p0`"', "-", "--", "1", "2"),
)
_LITERAL = (
    *("a", "b.py", "-f", "--force", "'q r'", '"q r"', "a\\ b", "src/d.py", "*.py", "~/f", "{a,b}"),
    *("$HOME", "$'a\\tb'", "''", "a#b", "a'b'c", "\\$X", "'$X'", "--x=y", "{}", "é", "1", "s*c"),
)
_PROGRAMS = (
    "git",
    "npm",
    "p0",
    "p1",
    "p2",
    "p3",
    "rm",
    "touch",
    "ls",
    "grep",
    "make",
    "cat",
    "./p9",
)
_PREFIXES = (
    *("", "", "", "", "", "sudo ", "sudo -u me ", "env ", "env A=b ", "env -i ", "timeout 5 "),
    *("nohup ", "nice ", "nice -n 3 ", "time ", "command ", "exec ", "A=b ", "A=$X ", "A=$(p0) "),
    *("timeout -s TERM 5 ", "env -u A ", "builtin ", "! ", "time -p ", "xargs ", "B=c D='e f' "),
)
_OPERATORS = (" && ", " || ", "; ", " | ", "\n", " & ", " |& ", ";", "&&", " ;\n", " \\\n&& ")
_REDIRECTIONS = (
    *(
        " > o1",
        " >> src/o2",
        " 2> o3",
        " &> o4",
        " < a.py",
        " 2>&1",
        " >o5 z",
        " >| o6",
        " > out/o7",
    ),
    *(" > 'o 8'", " > $X", " 2>/dev/null", " <<< w", " >& o9", " 3>&1", " > ~/o10", " >src/../o11"),
)
_DAMAGE = (
    *(
        "'",
        '"',
        "`",
        "$(",
        ")",
        "(",
        "{",
        "}",
        ";",
        "&",
        "|",
        "\\",
        "\n",
        "#",
        "$",
        "<",
        ">",
        "<<E\n",
    ),
    *(
        " ",
        "do",
        "done",
        "if ",
        "then ",
        "fi",
        "case ",
        "esac",
        "in",
        "!",
        "[[ ",
        " ]]",
        "((",
        "))",
    ),
    *("eval ", "function f ", "f() ", "<<<", "&&", "||", ";;", "\t", "\r", "=", "*", "~", "\\\n"),
)


class LineMaker:
    """Makes one line after the other from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def line(self) -> str:
        """Returns the next line; every third is damaged."""
        line = self._statement(3)
        if self._random.random() < 0.35:
            for _ in range(self._random.randint(1, 3)):
                line = self._damaged(line)
        return line

    def _damaged(self, line: str) -> str:
        at = self._random.randint(0, len(line))
        if self._random.random() < 0.3:
            return line[:at] + line[at + self._random.randint(1, 3) :]
        return line[:at] + self._random.choice(_DAMAGE) + line[at:]

    def _statement(self, depth: int) -> str:
        pick = self._random.random()
        if depth == 0 or pick < 0.35:
            return self._command()
        if pick < 0.65:
            operator = self._random.choice(_OPERATORS)
            return self._statement(depth - 1) + operator + self._statement(depth - 1)
        inner = self._statement(depth - 1)
        return self._random.choice(
            (
                f"({inner})",
                f"{{ {inner}; }}",
                f"if {inner}; then {self._command()}; else {self._command()}; fi",
                f"for i in 1 $(p0); do {inner}; done",
                f"while p1; do {inner}; done",
                f"until p0; do {inner}; done",
                f"case x in x) {inner};; *) {self._command()};; esac",
                f"cd src && {inner}",
                f"cd docs; {inner}",
                f"cd $X; {inner}",
                f"(cd src; {inner}); {self._command()}",
                f"bash -c '{inner}'" if "'" not in inner else f"sh -c {self._command()}",
                f"echo $({inner})",
                f'p0 "$({inner})"',
                f"[ -f a.py ] && {inner}",
                f"[[ -n $X ]] || {inner}",
                f"cat <<E\n{self._random.choice(_WORDS)}\nE\n{inner}",
                f"cat <<'E' | {self._command()}\n$(p3)\nE\n{inner}",
                f"f() {{ {inner}; }}; f",
                f"export A=b; {inner}",
                f"find . -name '*.py' -exec {self._command()} {{}} \\;",
                f"{inner}{self._random.choice(_REDIRECTIONS)}",
                f"{inner} # comment",
                f"time ({inner})",
                f'bash -ec "{self._random.choice(_PROGRAMS)} x"',
                f"p0 a | xargs {self._command()}",
                f"p2 > >({inner})",
            )
        )

    def _command(self) -> str:
        words = [
            self._random.choice(_LITERAL if self._random.random() < 0.8 else _WORDS)
            for _ in range(self._random.randint(0, 4))
        ]
        prefix = self._random.choice(_PREFIXES)
        line = prefix + " ".join([self._random.choice(_PROGRAMS), *words])
        while self._random.random() < 0.25:
            line += self._random.choice(_REDIRECTIONS)
        return line
