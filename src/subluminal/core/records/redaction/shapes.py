r"""Tokens that are recognised by their shape: a table of names and patterns.

Patterns are byte patterns in RE2's syntax. If a pattern has groups, only the text of the groups is
masked, so that `password=` stays readable. Patterns must work in escaped text: there, `\n` before a
token is two characters, and `"` may be `\"`. Hits and near misses of each shape are in
tests/core/records/redaction/shape_examples.py (written so that scanners do not report them).
"""

from typing import NamedTuple

from subluminal.core.records.redaction.forms import LEFT_EDGE


class Shape(NamedTuple):
    """One kind of token."""

    name: str
    pattern: bytes
    prefilter: bytes
    """a cheap pattern that hits every text that `pattern` hits"""


WORD = rb"[A-Za-z0-9]"
DASHED = rb"[A-Za-z0-9-]"
URL_SAFE = rb"[A-Za-z0-9_-]"
HEX = rb"[a-f0-9]"
BASE64 = rb"(?:[A-Za-z0-9+]|\\*/)"
_CREDENTIAL = rb"(?:[A-Za-z0-9._~+-]|\\*/)"

_QUOTE = rb"""(?:\\*["'])?"""
_IS = _QUOTE + rb"\s*(?:[:=]|=>|\\+u003[dD]|%3[aAdD])\s*"
_BARE = rb"""[^\s"'\\&,;<>(){}\[\]$*%|]"""
"""One byte of an unquoted value. It excludes placeholders: `$X`, `<X>` and `{{x}}`."""


def _token(name: str, head: bytes, unit: bytes, count: bytes, *, exact: bool = False) -> Shape:
    """Returns the shape of `head` and `count` times `unit`; if `exact`, the word must end there."""
    whole = b"(" + head + unit + b"{" + count + b"})"
    return Shape(name, LEFT_EDGE + whole + (rb"\b" if exact else b""), head + unit + b"{4}")


def _sign(name: str, sign: bytes, before: bytes, after: bytes, *, exact: bool = False) -> Shape:
    """Returns the shape of a token that is recognised by `sign` in its middle."""
    whole = LEFT_EDGE + b"(" + before + sign + after + b")" + (rb"\b" if exact else b"")
    return Shape(name, whole, sign)


def _after(name: str, words: bytes, value: bytes) -> Shape:
    """Returns the shape of a value that follows `words`, as in `words = value`, in any notation."""
    head = b"(?i:" + words + b")" + _IS
    return Shape(name, head + _QUOTE + b"(" + value + b")", head)


_CLOUDS = (
    _token("aws_access_key_id", rb"(?:AKIA|ASIA|ABIA|ACCA)", rb"[A-Z2-7]", b"16", exact=True),
    _after("aws_secret_access_key", rb"secret_?access_?key", BASE64 + rb"{40}"),
    _after("aws_session_token", rb"aws_?session_?token", BASE64 + rb"{60,}={0,2}"),
    _token("google_api_key", rb"AIza", URL_SAFE, b"35"),
    _token("google_oauth_token", rb"ya29\.", URL_SAFE, b"20,"),
    _token("google_client_secret", rb"GOCSPX-", URL_SAFE, b"28"),
    _after("azure_account_key", rb"(?:account|access)_?key", BASE64 + rb"{43,90}={1,2}"),
    Shape("azure_sas_signature", rb"sig=([A-Za-z0-9%+/]{40,}(?:%3[dD]|=))", b"sig="),
    _sign("azure_client_secret", rb"\dQ~", rb"[A-Za-z0-9_~.]{3}", rb"[A-Za-z0-9_~.-]{31,34}"),
    _token("digitalocean_token", rb"do[opr]_v1_", HEX, b"64", exact=True),
    _token("cloudflare_ca_key", rb"v1\.0-" + HEX + rb"{24}-", HEX, b"100,"),
    _token("heroku_key", rb"HRKU-", URL_SAFE, b"36,"),
    _token("vault_token", rb"hv[sbr]\.", URL_SAFE, b"24,"),
    _sign("terraform_token", rb"\.atlasv1\.", WORD + rb"{14}", rb"[A-Za-z0-9_=-]{60,}"),
    _token("databricks_token", rb"dapi", HEX, b"32", exact=True),
    _token("planetscale_token", rb"pscale_(?:tkn|pw|oauth)_", rb"[A-Za-z0-9_.=-]", b"32,"),
    _token("supabase_access_token", rb"sbp_", HEX, b"40", exact=True),
    _token("supabase_secret_key", rb"sb_secret_", URL_SAFE, b"20,"),
    _token("tailscale_key", rb"tskey-[a-z]+-", DASHED, b"20,"),
    _token("doppler_token", rb"dp\.(?:pt|st|ct|sa|scim|audit)\.", rb"[A-Za-z0-9_.-]", b"40,"),
    _token("onepassword_token", rb"ops_eyJ", rb"[A-Za-z0-9_+/=-]", b"60,"),
)

_FORGES = (
    _token("github_token", rb"gh[pousr]_", WORD, b"36,"),
    _token("github_fine_grained_token", rb"github_pat_", rb"[A-Za-z0-9_]", b"70,"),
    _token("gitlab_token", rb"gl(?:pat|ptt|[dfr]t|cbt|soat|imt|agent|oas)-", URL_SAFE, b"20,"),
    _token("bitbucket_token", rb"ATBB", WORD, b"32", exact=True),
    _token("atlassian_token", rb"ATATT3", rb"[A-Za-z0-9_=-]", b"60,"),
    _token("npm_token", rb"npm_", WORD, b"36", exact=True),
    _token("pypi_token", rb"pypi-AgE", URL_SAFE, b"50,"),
    _token("rubygems_key", rb"rubygems_", HEX, b"48", exact=True),
    _token("crates_io_token", rb"cio", WORD, b"32", exact=True),
    _token("docker_token", rb"dckr_(?:pat|oat)_", URL_SAFE, b"20,"),
)

_TALK = (
    _token("slack_token", rb"xox[abeoprs]-", DASHED, b"10,"),
    _token("slack_app_token", rb"xapp-\d-", DASHED, b"20,"),
    Shape(
        "slack_webhook",
        rb"hooks\.slack\.com\\*/[a-z]+\\*/(" + BASE64 + rb"{30,})",
        rb"hooks\.slack\.com",
    ),
    _sign(
        "discord_bot_token",
        rb"\." + URL_SAFE + rb"{6}\.",
        rb"[MNO]" + URL_SAFE + rb"{23,25}",
        URL_SAFE + rb"{27,38}",
    ),
    Shape(
        "discord_webhook",
        rb"discord(?:app)?\.com\\*/api\\*/webhooks\\*/\d+\\*/(" + URL_SAFE + rb"{60,})",
        rb"discord(?:app)?\.com",
    ),
    _sign("telegram_bot_token", rb":AA", rb"\d{8,10}", URL_SAFE + rb"{33}"),
    Shape(
        "teams_webhook",
        rb"\.webhook\.office\.com\\*/webhookb2\\*/((?:[A-Za-z0-9@-]|\\*/){60,})",
        rb"\.webhook\.office\.com",
    ),
    _token("twilio_key", rb"SK", HEX, b"32", exact=True),
    _token("sendgrid_key", rb"SG\." + URL_SAFE + rb"{22}\.", URL_SAFE, b"43"),
    _token("mailgun_key", rb"key-", HEX, b"32", exact=True),
    _sign("mailchimp_key", rb"-us\d", HEX + rb"{32}", rb"\d?", exact=True),
)

_PAYMENTS = (
    _token("stripe_key", rb"[sr]k_(?:live|test)_", WORD, b"16,"),
    _token("stripe_webhook_secret", rb"whsec_", rb"[A-Za-z0-9+/=]", b"32,"),
    _token("square_access_token", rb"EAAA", URL_SAFE, b"60", exact=True),
    _token("square_secret", rb"sq0(?:atp|csp)-", URL_SAFE, b"22,43"),
    _token("braintree_token", rb"access_token\$production\$" + WORD + rb"{16}\$", HEX, b"32"),
    _token("shopify_token", rb"shp(?:at|ca|pa|ss)_", rb"[a-fA-F0-9]", b"32", exact=True),
)

_MODELS = (
    _token("anthropic_key", rb"sk-ant-", URL_SAFE, b"32,"),
    _token("openai_key", rb"sk-(?:proj|svcacct|admin|None)-", URL_SAFE, b"32,"),
    _token("openrouter_key", rb"sk-or-v1-", HEX, b"64", exact=True),
    _token("model_provider_key", rb"sk-", WORD, b"32,64", exact=True),
    _token("huggingface_token", rb"hf_", WORD, b"34,"),
    _token("groq_key", rb"gsk_", WORD, b"40,"),
    _token("xai_key", rb"xai-", WORD, b"60,"),
    _token("perplexity_key", rb"pplx-", WORD, b"40,"),
    _token("replicate_token", rb"r8_", WORD, b"37", exact=True),
)

_TOOLS = (
    _token("linear_key", rb"lin_(?:api|oauth)_", WORD, b"32,"),
    _token("notion_token", rb"ntn_", WORD, b"40,"),
    _token("notion_legacy_token", rb"secret_", WORD, b"43", exact=True),
    _token("figma_token", rb"figd_", URL_SAFE, b"36,"),
    _token("airtable_token", rb"pat" + WORD + rb"{14}\.", HEX, b"64", exact=True),
    _token("postman_key", rb"PMAK-" + HEX + rb"{24}-", HEX, b"34", exact=True),
    _token("sentry_token", rb"sntry[su]_", rb"[A-Za-z0-9+/=_-]", b"40,"),
    _token("grafana_service_token", rb"glsa_", rb"[A-Za-z0-9_]", b"41", exact=True),
    _token("grafana_cloud_token", rb"glc_", rb"[A-Za-z0-9+/=]", b"32,"),
    _token("newrelic_key", rb"NRAK-", rb"[A-Z0-9]", b"27", exact=True),
    _token("age_secret_key", rb"AGE-SECRET-KEY-1", rb"[02-9AC-HJ-NP-Z]", b"58", exact=True),
)

_KEY_BODY = rb"(?:[A-Za-z0-9+/=\s\\:,.%]|-[A-Za-z0-9])*"

_NAMED = (
    rb"(?i:password|passwd|passphrase|secret|secret[_-]?key|api[_-]?key|access[_-]?key"
    rb"|(?:auth|access|refresh|bot|session|id|api|oauth|personal)[_-]?token"
    rb"|private[_-]?key|client[_-]?secret|credentials?)"
) + _IS
_DOUBLE = rb"""\\*"([^"\\$<{\[*\s][^"\\]{3,})"""
_SINGLE = rb"""\\*'([^'"\\$<{\[*\s][^'"\\]{3,})"""

_GENERAL = (
    _sign(
        "jwt", rb"\.eyJ", rb"eyJ" + URL_SAFE + rb"{8,}", URL_SAFE + rb"{8,}\." + URL_SAFE + b"{8,}"
    ),
    # A key without its end is masked too, because previews are cut.
    Shape(
        "private_key",
        rb"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
        + _KEY_BODY
        + rb"(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----)?",
        b"PRIVATE KEY",
    ),
    Shape(
        "bearer_token",
        rb"(?i:bearer)(?:\s|\\+u0020|%20|\+)+(" + _CREDENTIAL + rb"{20,}=*)",
        rb"(?i:bearer)[\s\\%+]",
    ),
    Shape(
        "basic_auth",
        rb"(?i:authorization)" + _IS + _QUOTE + rb"(?i:basic|token)\s+(" + _CREDENTIAL + b"{6,}=*)",
        rb"(?i:basic|token)\s",
    ),
    Shape(
        "url_password",
        rb"[A-Za-z][A-Za-z0-9+.-]*:\\*/\\*/[^\s/:@\"'\\]*:"
        rb"([^\s/@\"'\\$<{\[*][^\s/@\"'\\]{2,})@",
        rb"/[^\s/:@\"'\\]*:[^\s/@\"'\\]+@",
    ),
    # `PWD=` alone is the working directory in every dump of an environment.
    Shape(
        "connection_password",
        rb"(?i:;\s*pwd=)([^;\"'\\\s/$<{\[*][^;\"'\\\s]{2,})",
        rb"(?i:;\s*pwd=)",
    ),
    Shape(
        "password", _NAMED + rb"(?:" + _DOUBLE + b"|" + _SINGLE + b"|(" + _BARE + b"{6,}))", _NAMED
    ),
)


SHAPES: tuple[Shape, ...] = _CLOUDS + _FORGES + _TALK + _PAYMENTS + _MODELS + _TOOLS + _GENERAL
