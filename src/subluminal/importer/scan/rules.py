"""The rules of `sub scan`, their levels, and the rows that it reports.

Weights and thresholds are those of Agent-SPM. The pages under docs/reference/scan-rules are
generated from the docstrings here.
"""

from collections.abc import Iterable
from enum import Enum, StrEnum
from typing import NamedTuple


class Level(StrEnum):
    """How serious a finding is."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    INFO = "info"


WEIGHTS = {Level.CRITICAL: 30, Level.HIGH: 15, Level.MEDIUM: 8, Level.LOW: 3, Level.INFO: 1}
"""What a finding adds to the risk score of its row, worst level first."""
MAX_SCORE = 100
_BLOCK_FROM = 70
_REVIEW_FROM = 40


class Recommendation(StrEnum):
    """What a risk score means: block from 70, review from 40, else allow."""

    BLOCK = "block"
    REVIEW = "review"
    ALLOW = "allow"


class About(Enum):
    """What a rule looks at."""

    ENTRY = "entries of a client's configuration"
    DEFINITION = "tools as a server lists them"
    MANIFEST = "manifests"


class Rule(StrEnum):
    """What a finding says. Each rule has a page with hits and near misses."""

    UNPINNED_VERSION = "UNPINNED_VERSION"
    """The entry starts whatever version of a package or image is newest at that moment. Whoever
    can publish the package decides what runs here tomorrow, without any change to this file.

    Write the version: `npx -y name@1.2.3`, `uvx name@1.2.3` or `uvx --from name==1.2.3 name`,
    `docker run … image@sha256:…` or `image:1.2.3`.
    """
    SHELL_LAUNCHER = "SHELL_LAUNCHER"
    """The entry starts a shell that runs a text, such as `bash -c "…"`. What really runs is hard
    to review, and it depends on the shell's own start-up files. The level is high if the text
    downloads a program and runs it.

    Put the program and its arguments into `command` and `args`. Variables belong into `env`.
    """
    SECRET_IN_CONFIG = "SECRET_IN_CONFIG"
    """The file has a secret in plain text: in `env`, in a header, in an argument or in a URL.
    Every program of this user can read it, including agents, and backups copy it. The finding
    never shows the value.

    Move it out with `sub import CLIENT --bind-secrets`, or write a reference such as `${TOKEN}`.
    Then rotate the secret.
    """
    PLAINTEXT_URL = "PLAINTEXT_URL"
    """The client reaches the server over plain HTTP, so others on the network can read and change
    what the server lists and answers. The level is high if headers are sent there, because they
    usually hold a credential.

    Use `https://` or `wss://`. A server on this machine (`localhost`, `127.0.0.1`, `::1`) is not
    reported.
    """
    NOT_WRAPPED = "NOT_WRAPPED"
    """No shim is in front of this server, so its calls are neither decided nor recorded. The
    level is info if hooks of the same client see the calls: a hook depends on the client to run
    it. A server that is reached by URL cannot be wrapped yet; hooks cover it completely.

    Run `sub import CLIENT`. For a server that is reached by URL, add hooks with `sub import
    CLIENT --hooks`, if the client has hooks.
    """
    AUTO_APPROVED = "AUTO_APPROVED"
    """A switch of the client lets the agent call the tools of this server without asking anyone.
    The level is high if the switch covers everything that the agent does.

    Remove the switch, or approve single tools. With a policy in force, `require` rules ask for
    the calls that matter.
    """
    BROAD_PATH = "BROAD_PATH"
    """The server gets the whole disk or a whole home directory, with keys, tokens and browser
    profiles in it. The socket of Docker counts as the whole machine.

    Give the server the directories that it needs.
    """
    WRITABLE_BY_OTHERS = "WRITABLE_BY_OTHERS"
    """Other users can write the configuration, or replace it, because the file or a directory
    above it is open to them. Whoever writes it decides which programs this user's agents start.

    Check the file's contents, then run the `chmod` or `chown` that the finding names.
    """

    HIDDEN_INSTRUCTIONS = "HIDDEN_INSTRUCTIONS"
    """The text of a tool gives the agent orders that have nothing to do with using the tool: to
    keep something from the user, to ignore its instructions, to send a conversation or mail
    elsewhere. Agents read the whole definition; people see a name and a first line. All strings
    of the definition are read, in schemas at any depth too.

    Remove the server, and look at what it was called with: `sub query server=NAME`.
    """
    INVISIBLE_TEXT = "INVISIBLE_TEXT"
    """A definition has characters that people do not see and agents read: characters without
    width, the tags block of Unicode, runs of variation selectors, controls that reorder a line,
    escape sequences of terminals, or white space that pushes text out of view. Emoji and the
    joiners that some scripts need are not reported.

    Remove the server, or ask its author. The finding says which characters, and what they spell.
    """
    CREDENTIAL_PATH = "CREDENTIAL_PATH"
    """The text of a tool tells the agent to read or pass on a file with credentials, such as
    `~/.ssh/id_rsa` or another client's MCP configuration. A path that is only named, as a default
    or an example, is not reported.

    Remove the server. If an agent has used it, rotate the credentials that the text names.
    """
    CROSS_SERVER_REFERENCE = "CROSS_SERVER_REFERENCE"
    """The text of a tool speaks about a tool of another server of the same client. A server
    cannot know which others are installed; a text that steers their use can change what they are
    used for.

    Read the text. If it only recommends a companion, pin the server's version and accept the
    finding.
    """
    SHADOWED_TOOL = "SHADOWED_TOOL"
    """Two servers of one client list a tool of the same name with different definitions. The
    agent may call the wrong one. Two copies of the same server are not reported.

    Rename or leave out one of the two, if the server or the client can.
    """
    LOOKALIKE_NAME = "LOOKALIKE_NAME"
    """The name of a tool looks like that of another server of the same client: with letters of
    another script or digits in place of letters (level high), or with one letter different and
    the same parameters. Plurals, versions and other spellings of the same words are not reported.

    Compare the two servers. A copy that was made to be confused with the original must go.
    """

    MISSING_VERSION = "MISSING_VERSION"
    """The manifest has no `version`.

    Add the version that was reviewed.
    """
    MISSING_PUBLISHER = "MISSING_PUBLISHER"
    """The manifest has no `publisher`.

    Add who publishes the server.
    """
    MISSING_SOURCE = "MISSING_SOURCE"
    """The manifest has no `source`, so nobody can look at the code.

    Add the address of the source code.
    """
    UNVERIFIED_SERVER = "UNVERIFIED_SERVER"
    """The manifest does not say `"verified": true`.

    Review the server, then set it.
    """
    NO_PERMISSIONS_DECLARED = "NO_PERMISSIONS_DECLARED"
    """The manifest declares no permissions. A server that needs none is rare.

    Declare what the server uses.
    """
    HIGH_RISK_PERMISSION = "HIGH_RISK_PERMISSION"
    """The server asks for `filesystem.write`, `network.outbound`, `process.spawn`, `env.read`,
    `shell.execute` or `database.admin`.

    Check whether it needs the permission; a policy can narrow it.
    """
    MEDIUM_RISK_PERMISSION = "MEDIUM_RISK_PERMISSION"
    """The server asks for `filesystem.read`, `network.inbound`, `clipboard.write` or
    `browser.navigate`.

    Check whether it needs the permission.
    """
    EXCESSIVE_PERMISSIONS = "EXCESSIVE_PERMISSIONS"
    """The server asks for three or more permissions of high risk.

    Prefer a server that does less, or split it.
    """
    DANGEROUS_TOOL_NAME = "DANGEROUS_TOOL_NAME"
    """A tool's name has a word that begins with `exec`, `shell`, `eval`, `spawn` or `system`.
    Agent-SPM looks for these letters anywhere, so it also reports `filesystem_read` and
    `retrieval`.

    Check what the tool runs, and write a rule for it.
    """


_MANIFEST_RULES = (
    *(Rule.MISSING_VERSION, Rule.MISSING_PUBLISHER, Rule.MISSING_SOURCE, Rule.UNVERIFIED_SERVER),
    *(Rule.NO_PERMISSIONS_DECLARED, Rule.HIGH_RISK_PERMISSION, Rule.MEDIUM_RISK_PERMISSION),
    *(Rule.EXCESSIVE_PERMISSIONS, Rule.DANGEROUS_TOOL_NAME),
)
_DEFINITION_RULES = (
    *(Rule.HIDDEN_INSTRUCTIONS, Rule.INVISIBLE_TEXT, Rule.CREDENTIAL_PATH),
    *(Rule.CROSS_SERVER_REFERENCE, Rule.SHADOWED_TOOL, Rule.LOOKALIKE_NAME),
)


def about(rule: Rule) -> About:
    """Returns what a rule looks at."""
    if rule in _MANIFEST_RULES:
        return About.MANIFEST
    return About.DEFINITION if rule in _DEFINITION_RULES else About.ENTRY


class Finding(NamedTuple):
    """One thing that a rule found."""

    rule: Rule
    level: Level
    message: str
    line: int | None = None
    """line in the row's file; None if the row has no file"""
    hint: str = ""
    """what to do about it; shown to people, and not part of the JSON"""


class Row(NamedTuple):
    """One server of one configuration or manifest, or one that only the ledger knows."""

    server_name: str
    """empty for a file that has no servers"""
    client: str | None
    file: str | None
    line: int | None
    transport: str | None
    findings: tuple[Finding, ...]

    @property
    def risk_score(self) -> int:
        """The sum of the findings' weights, at most 100."""
        return min(MAX_SCORE, sum(WEIGHTS[finding.level] for finding in self.findings))

    @property
    def recommendation(self) -> Recommendation:
        """What the risk score means."""
        if self.risk_score >= _BLOCK_FROM:
            return Recommendation.BLOCK
        if self.risk_score >= _REVIEW_FROM:
            return Recommendation.REVIEW
        return Recommendation.ALLOW

    def as_dict(self) -> dict[str, object]:
        """Returns the row as plain data, for JSON."""
        return {
            "server_name": self.server_name,
            "client": self.client,
            "file": self.file,
            "line": self.line,
            "transport": self.transport,
            "risk_score": self.risk_score,
            "recommendation": self.recommendation.value,
            "findings": [
                {"rule": each.rule.value, "level": each.level.value, **_rest(each)}
                for each in self.findings
            ],
        }


def _rest(finding: Finding) -> dict[str, object]:
    return {"message": finding.message, "line": finding.line}


def severity(level: Level) -> int:
    """Sort key of a level: critical is 0."""
    return list(Level).index(level)


def reaches(rows: Iterable[Row], level: Level) -> bool:
    """Whether a finding of this level or a worse one is among the rows."""
    wanted = severity(level)
    return any(severity(each.level) <= wanted for row in rows for each in row.findings)
