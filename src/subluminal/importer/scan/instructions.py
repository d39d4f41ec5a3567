"""Orders to the agent in the text of a tool, and credentials that it is told to read.

Each shape is one that was published in an attack on MCP clients, narrowed until the definitions of
well-known servers do not match. White space is joined first, and invisible characters are taken
out, so that neither splits a phrase.
"""

import base64
import binascii
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from subluminal.importer.scan.unseen import without_unseen

_WORDS = r"[^.!?]"
_USER = r"(?:the |any |your )?(?:users?|humans?|person|operator|anyone|customers?)\b"
_TELL = r"(?:tell|inform|notify|alert|warn)"
_TELLING = r"(?:telling|informing|notifying|alerting|warning|mentioning it to)"
_FORBID = r"(?:do not|don'?t|never|must not|mustn'?t|should not|shouldn'?t|avoid)"
_IT = r"(?:this|that|it|these|those|any(?:thing)?|the (?:above|following|file|call|step|request))\b"
_KEPT_BACK = (
    r"(?:\s*(?:[.,;:!?()\[\]\"]|$)| (?:and|but|before|while|anything)\b"
    r"| (?:about|of) (?:this|it|that|these|those|the|any|your|what you|why you|having|\w+ing)\b"
    r"| (?:that|what|why|how) you\b)"
)
"""What follows "do not tell the user" if something is kept back; "to type `yes`" is advice."""
_ADDRESS = r"(?:\+\d{8,15}|[\w.+-]+@(?!example\.)[\w-]+(?:\.[\w-]+)+)"
_MUST = r"(?:must|always|shall|need to|have to|required to|should)"
_GOODS = r"(?:e-?mails?|messages?|mails?|payments?|transfers?|transactions?|requests?|data|files?)"

_TAGS = (
    # The documentation of AWS has `<important> <p>…`, and servers copy it.
    r"<\s*(?:important(?!\s*>\s*<p)|secret|hidden|confidential|admin|system(?:[-_ ]?(?:prompt|"
    r"message|instructions?|override))?)\s*>|<\|(?:im_start|im_end|system|user|assistant)\|>|\[/?INST\]|"
    r"<</?SYS>>"
)
_SECRECY = (
    rf"\b{_FORBID} (?:ever )?{_TELL}\b(?: (?:or|and) {_TELL}\b)? {_USER}(?={_KEPT_BACK})|"
    rf"\b{_FORBID} (?:ever )?(?:mention|reveal|disclose) {_IT}{_WORDS}{{0,90}}?\b{_USER}|"
    rf"\bwithout (?:ever )?{_TELLING} {_USER}|"
    rf"\b(?:hide|conceal|keep) (?:this|it|that|the \w+|everything)(?: secret| hidden)? "
    rf"from {_USER}|"
    rf"\b{_USER} (?:must|should) (?:not|never) (?:know|find out|be (?:told|aware))\b|"
    rf"\b{_USER} (?:do not|does not|doesn'?t) need to (?:know|be told)(?: about)? "
    r"(?:this|it|that)\b|"
    r"\bwithout (?:the )?user'?s? (?:knowing|noticing|knowledge|awareness|consent)\b|"
    r"\b(?:secretly|covertly|surreptitiously|silently) (?:read|send|forward|copy|exfiltrate|upload|"
    r"collect|transmit|bcc|attach|include|post|leak|execute|run)\b"
)
_OVERRIDE = (
    r"\b(?:ignore|disregard|forget|override|bypass) (?:all |any |of |the |your |my |these |those )*"
    r"(?:previous|prior|above|earlier|preceding|original|system|safety|other) (?:\w+ )?"
    r"(?:instructions?|prompts?|guidelines?|directives?|directions?)\b|"
    r"\byou are now (?:in )?(?:\w+ )?(?:developer|admin|root|jailbreak|god|unrestricted) mode\b"
)
_TAKES = (
    r"\b(?:send|pass|include|forward|upload|append|attach|transmit|exfiltrate|leak|copy|post|report|"
    rf"provide|put|add)\b{_WORDS}{{0,60}}?\b(?:"
    r"(?:full|entire|whole|complete|all(?: of)? (?:the|your)|previous|your)\s+(?:\w+ )?"
    r"(?:conversations?|chat|chats|messages?)\s+(?:history|log|transcript|so far)|"
    r"(?:full|entire|whole|complete) (?:conversation|chat|context window|transcript)|"
    r"(?:conversation|chat) (?:history|transcript)|"
    r"(?:your|the|this) system (?:prompt|message)|"
    r"(?:all|the values? of(?: all)?|every) (?:the |of the |your )?"
    r"(?:environment variables?|env vars?)|"
    r"(?:full|entire|complete|raw)? ?contents? of (?:all|any|every) (?:open )?files)"
)
_REDIRECT = (
    rf"\b{_MUST}\b{_WORDS}{{0,40}}?\b(?:bcc|cc|forward|redirect|re-?route|send|route|copy)\b"
    rf".{{0,80}}?{_ADDRESS}|"
    rf"\b(?:all|every|any|each) {_GOODS}\b.{{0,60}}?\b{_MUST} be "
    rf"(?:sent|forwarded|routed|redirected|copied|bcc'?e?d).{{0,60}}?{_ADDRESS}|"
    r"\b(?:change|replace|set|switch|swap) the (?:recipient|destination|address|beneficiary|"
    rf"account|phone number|receiver)\b.{{0,40}}?\bto\b.{{0,20}}?{_ADDRESS}"
)
_CONSENT = (
    r"\buser (?:has|have) (?:already )?(?:consented|given (?:\w+ )?(?:consent|permission)|"
    r"pre-?approved|approved|authori[sz]ed|agreed to)\b"
)
_CONDITIONAL = re.compile(
    r"(?:after|once|if|when|unless|until|whether|that|only|before|ensure|confirm|assume\w* that)\b"
    r"[^.!?:]{0,25}$",
    re.IGNORECASE,
)
_UNLESS = re.compile(r"[^.!?]{0,200}\b(?:unless|until|yet)\b", re.IGNORECASE)
_NEGATED = re.compile(r"\b(?:never|not|avoid|refuse[sd]?|n't)\b[^.!?]*$", re.IGNORECASE)
_CLAUSE = re.compile(
    r"(?:^|[.!?:;,(—-]\s*|\b(?:because|since|as|and)\s)(?:the\s|your\s)?$", re.IGNORECASE
)
_EACH_REQUEST = re.compile(
    r"\b(?:each|every|follow-up)\s(?:request|call|message|turn)s?\b", re.IGNORECASE
)
_MIN_BASE64 = 32
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/_-]{32,}={0,2}(?![A-Za-z0-9+/=])")
_MIN_SENTENCE = 5
"""Fewest words that a decoded text has if it is a sentence."""

_KEYS = (
    r"(?:(?:~|\$HOME|/home/\w+|/root|/Users/\w+)?/?\.ssh/)?"
    r"\bid_(?:rsa|ed25519|ecdsa|dsa)\b(?!\.pub)|/etc/(?:shadow|sudoers)\b"
    r"|\.(?:cursor|vscode|gemini|copilot)/mcp(?:-config)?\.json|\.claude\.json\b"
    r"|\.codex/auth\.json|\bclaude_desktop_config\.json"
)
"""Files that no server has a reason to speak of in an order to the agent."""
_SERVICE_KEYS = (
    r"\.aws/(?:credentials|config)|\.netrc\b|\.npmrc\b|\.pypirc\b|\.kube/config|\.docker/config\.json"
    r"|\.config/(?:gh/hosts\.yml|gcloud)|/etc/passwd\b|\.ssh\b(?:/(?:config|authorized_keys))?(?!/id_)"
    r"|(?<![\w/-])\.?mcp\.json\b|\.git-credentials\b|\.gnupg\b|\.(?:bash|zsh)_history\b"
)
"""Files that some servers read themselves, so only passing them on is reported."""
_READ = r"\b(?:read|reading|cat|open|load|access|fetch|retrieve|dump|print|get|copy|contents? of)\b"
_PASS = (
    r"\b(?:send|sending|pass|passing|include|including|attach|append|paste|upload|exfiltrate|"
    r"its contents?)\b"
)
_REFUSED = re.compile(
    r"(?i)\b(?:not|never|cannot|can'?t|won'?t|n't|refuses? to|without)\s+(?:\w+\s+)?$"
)
_ONLY_NAMED = re.compile(r"(?i)\b(?:e\.g\.?|for example|such as|default(?:s|ing)?|path to|like)\b")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+(?=[A-Z<\[(*'\"`-])|\s[-*•]\s")
_PARAMETER = re.compile(
    r"(?i)(?:id_(?:rsa|ed25519|ecdsa)|ssh_(?:private_)?key|aws_credentials|etc_shadow)"
)
_PASSES = re.compile(_PASS, re.IGNORECASE)
_NEAR = 300
"""How far from a path a verb may be, in characters."""
_TAKES_CONTENT = re.compile(r"(?i)content|read")


class Order(NamedTuple):
    """An order that a text gives."""

    what: str
    excerpt: str


def _always(_text: str, _found: "re.Match[str]") -> bool:
    return True


def _is_secrecy(text: str, found: "re.Match[str]") -> bool:
    """`do not tell … unless …` is about when; `never … without telling …` is for the user."""
    if found.group().lower().startswith("without"):
        return _NEGATED.search(text[max(0, found.start() - 120) : found.start()]) is None
    return _UNLESS.match(text, found.end()) is None


def _is_claim(text: str, found: "re.Match[str]") -> bool:
    """`only if the user has approved …` and `tools the user has approved` claim nothing."""
    before = text[max(0, found.start() - 60) : found.start()]
    if "consent" not in found.group().lower() and not _CLAUSE.search(before):
        return False
    return _CONDITIONAL.search(before) is None


def _is_no_interface(text: str, found: "re.Match[str]") -> bool:
    """`each request must include the full conversation` describes an interface of a model."""
    return _EACH_REQUEST.search(text[max(0, found.start() - 40) : found.start()]) is None


class _Shape(NamedTuple):
    """One kind of order."""

    what: str
    needs: tuple[str, ...]
    """a text without any of these, in lower case, does not match; looking for them is cheap"""
    pattern: "re.Pattern[str]"
    fits: Callable[[str, "re.Match[str]"], bool] = _always


def _shape(what: str, needs: str, pattern: str, fits: Any = _always) -> _Shape:
    return _Shape(what, tuple(needs.split("|")), re.compile(pattern, re.IGNORECASE), fits)


_SHAPES = (
    _shape("marks a part as an order to the agent", "<|[inst|[/inst", _TAGS),
    _shape(
        "tells the agent to keep something from the user",
        "user|human|person|operator|anyone|customer|secretly|covertly|surreptitiously|silently",
        _SECRECY,
        _is_secrecy,
    ),
    _shape(
        "tells the agent to ignore its instructions",
        "ignore|disregard|forget|override|bypass|you are now",
        _OVERRIDE,
    ),
    _shape(
        "tells the agent to hand over the conversation or its surroundings",
        "conversation|chat|messages|transcript|system |context window|environment var|env var|"
        "of all |of any |of every ",
        _TAKES,
        _is_no_interface,
    ),
    _shape("tells the agent to send something to an address in the text", "@|+", _REDIRECT),
    _shape("claims that the user has agreed", "user ha", _CONSENT, _is_claim),
)


class _Credentials(NamedTuple):
    """Files with credentials, and the verbs that make their mention an order."""

    needs: tuple[str, ...]
    paths: "re.Pattern[str]"
    verbs: "re.Pattern[str]"


_CREDENTIALS = (
    _Credentials(
        (
            *("id_rsa", "id_ed25519", "id_ecdsa", "id_dsa", "/etc/s", "/mcp", ".claude", "claude_"),
            ".codex",
        ),
        re.compile(_KEYS, re.IGNORECASE),
        re.compile(f"{_READ}|{_PASS}", re.IGNORECASE),
    ),
    _Credentials(
        (
            *(".aws", ".netrc", ".npmrc", ".pypirc", ".kube", ".docker", ".config/", "/etc/p"),
            *(".ssh", "mcp.json", ".git-", ".gnupg", "_history"),
        ),
        re.compile(_SERVICE_KEYS, re.IGNORECASE),
        re.compile(_PASS, re.IGNORECASE),
    ),
)
_MAX_EXCERPT = 80


def plain_text(text: str) -> str:
    """Returns a text as an agent understands it: without invisible characters, on one line."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", without_unseen(text)).replace("’", "'")
    return " ".join(text.split())


def hidden_orders(text: str) -> Iterator[Order]:
    """Yields each kind of order in a text, once. The text is `plain_text`."""
    lower = text.lower()
    for shape in _SHAPES:
        if any(need in lower for need in shape.needs):
            found = next((f for f in shape.pattern.finditer(text) if shape.fits(text, f)), None)
            if found is not None:
                yield Order(shape.what, excerpt(text, found.start(), found.end()))
    for found in _BASE64.finditer(text) if _has_long_word(text) else ():
        decoded = _decoded(found.group())
        if decoded:
            yield Order("hides a sentence in base64", excerpt(decoded, 0, len(decoded)))
            return


def credential_paths(text: str) -> Iterator[str]:
    """Yields the credentials that a text tells the agent to read or to pass on, each once."""
    lower = text.lower()
    seen: set[str] = set()
    for needs, paths, verbs in _CREDENTIALS:
        if not any(need in lower for need in needs):
            continue
        for sentence in _SENTENCE.split(text):
            for found in paths.finditer(sentence):
                name = found.group().strip()
                if name not in seen and _is_ordered(sentence, found.start(), verbs):
                    seen.add(name)
                    yield name


def _has_long_word(text: str) -> bool:
    return any(len(word) >= _MIN_BASE64 for word in text.split(" "))


def is_credential_parameter(name: str) -> bool:
    """Whether a parameter is named after the contents of a private key."""
    return bool(_PARAMETER.search(name) and _TAKES_CONTENT.search(name))


def _is_ordered(sentence: str, at: int, verbs: "re.Pattern[str]") -> bool:
    """Whether a verb before the path, or one that passes it on after it, makes it an order."""
    before, after = sentence[max(0, at - _NEAR) : at], sentence[at : at + _NEAR]
    orders = [f for f in verbs.finditer(before) if not _REFUSED.search(before[: f.start()])]
    if not orders:
        return bool(_PASSES.search(after)) and not _ONLY_NAMED.search(before)
    return _ONLY_NAMED.search(before, orders[-1].end()) is None


def excerpt(text: str, start: int, end: int) -> str:
    """Returns the part of a text that was found, short enough for a line."""
    part = text[start:end]
    return part if len(part) <= _MAX_EXCERPT else f"{part[: _MAX_EXCERPT - 1]}…"


def _decoded(text: str) -> str:
    """Returns the sentence that a text encodes in base64; empty if it does not encode one."""
    raw = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        data = base64.b64decode(raw + "=" * (-len(raw) % 4), validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return ""
    words = data.split(" ")
    spelled = sum(word.strip(".,:;!?'\"").isalpha() for word in words)
    return data if spelled >= max(_MIN_SENTENCE, len(words) // 2) else ""
