"""Hits and near misses of every shape. Made from parts, so that scanners do not report them."""

W = "Zk3Qp7Lm2Xv9Rt5Bn8Yc4Hd6Fj1GsWa0" * 8  # letters and digits
H = "3f9a1c07e5b2d84690fe7a5c1d3b8e24" * 8  # lowercase hex
U = "QZ7XKMPLRTVWYBNCDFGHJ2345" * 8  # uppercase, base32
B = "qT3/Zk+9xVb2Lm7Rp5Nw8Yc4Hd6Fj1Gs" * 8  # base64

EXAMPLES: dict[str, tuple[list[str], list[str]]] = {
    "aws_access_key_id": (
        ["AKIA" + U[:16], "x=ASIA" + U[:16], "\\nAKIA" + U[:16], "%3DAKIA" + U[:16]],
        ["AKIA" + U[:15], "AKIA" + U[:17], "xAKIA" + U[:16], "AKIA" + W[:16].lower()],
    ),
    "aws_secret_access_key": (
        [
            "aws_secret_access_key = " + B[:40],
            '"SecretAccessKey": "' + B[:40],
            'secretAccessKey\\":\\"' + B[:40],
        ],
        ["aws_secret_access_key = " + B[:39] + " ", "secret_access_key_id: " + B[:40]],
    ),
    "aws_session_token": (
        ["AWS_SESSION_TOKEN=" + B[:200], '"aws_session_token": "' + B[:80] + "=="],
        ["AWS_SESSION_TOKEN=" + B[:50], "aws_session_token_expiry=" + B[:80]],
    ),
    "google_api_key": (["AIza" + W[:35], "key=AIza" + W[:35]], ["AIza" + W[:34], "bAIza" + W[:35]]),
    "google_oauth_token": (["ya29." + W[:60]], ["ya29." + W[:12], "mya29." + W[:60]]),
    "google_client_secret": (["GOCSPX-" + W[:28]], ["GOCSPX-" + W[:20], "GOCSPX " + W[:28]]),
    "azure_account_key": (
        ["AccountKey=" + B[:86] + "==", "SharedAccessKey=" + B[:43] + "="],
        ["AccountKey=" + B[:86], "AccountKeyName=" + B[:86] + "=="],
    ),
    "azure_sas_signature": (
        ["https://x.blob/y?sv=1&sig=" + W[:43] + "%3D", "?sig=" + W[:43] + "="],
        ["?sig=" + W[:20] + "%3D", "?sign=" + W[:43]],
    ),
    "azure_client_secret": (["abc8Q~" + W[:34]], ["abc8Q~" + W[:20], "abcxQ~" + W[:34]]),
    "digitalocean_token": (
        ["dop_v1_" + H[:64], "doo_v1_" + H[:64]],
        ["dop_v1_" + H[:63], "doq_v1_" + H[:64]],
    ),
    "cloudflare_ca_key": (
        ["v1.0-" + H[:24] + "-" + H[:146]],
        ["v1.0-" + H[:24] + "-" + H[:40], "v1.0-rc1"],
    ),
    "heroku_key": (["HRKU-" + W[:60]], ["HRKU-" + W[:10], "SHRKU-" + W[:60]]),
    "vault_token": (["hvs." + W[:90], "hvb." + W[:24]], ["hvs." + W[:8], "hvx." + W[:90]]),
    "terraform_token": (
        [W[:14] + ".atlasv1." + W[:67]],
        [W[:14] + ".atlasv1." + W[:20], W[:13] + ".atlasv1." + W[:67]],
    ),
    "databricks_token": (["dapi" + H[:32]], ["dapi" + H[:31], "dapi" + H[:40]]),
    "planetscale_token": (
        ["pscale_tkn_" + W[:43], "pscale_pw_" + W[:43]],
        ["pscale_tkn_" + W[:12], "pscale_db_" + W[:43]],
    ),
    "supabase_access_token": (["sbp_" + H[:40]], ["sbp_" + H[:39], "sbp_" + H[:41]]),
    "supabase_secret_key": (
        ["sb_secret_" + W[:31]],
        ["sb_secret_" + W[:8], "sb_publishable_" + W[:31]],
    ),
    "tailscale_key": (
        ["tskey-auth-" + W[:16] + "-" + W[:32]],
        ["tskey-auth-" + W[:12], "tskey--" + W[:32]],
    ),
    "doppler_token": (
        ["dp.pt." + W[:43], "dp.st.dev." + W[:43]],
        ["dp.pt." + W[:20], "dp.xx." + W[:43]],
    ),
    "onepassword_token": (["ops_eyJ" + W[:120]], ["ops_eyJ" + W[:30], "ops_" + W[:120]]),
    "github_token": (
        ["ghp_" + W[:36], "token ghs_" + W[:36], '{"t":"gho_' + W[:36] + '"}', "\\nghp_" + W[:36]],
        ["ghp_" + W[:35], "ghx_" + W[:36], "Xghp_" + W[:36]],
    ),
    "github_fine_grained_token": (
        ["github_pat_" + W[:22] + "_" + W[:59]],
        ["github_pat_" + W[:22], "github_pat_" + W[:40]],
    ),
    "gitlab_token": (
        ["glpat-" + W[:20], "glptt-" + W[:40], "gldt-" + W[:20]],
        ["glpat-" + W[:19], "glxat-" + W[:20]],
    ),
    "bitbucket_token": (["ATBB" + W[:32]], ["ATBB" + W[:31], "ATBB" + W[:33]]),
    "atlassian_token": (["ATATT3" + W[:180]], ["ATATT3" + W[:40], "ATATT2" + W[:180]]),
    "npm_token": (
        ["npm_" + W[:36], "_authToken=npm_" + W[:36]],
        ["npm_" + W[:35], "npm_" + W[:37], "npm_config_registry"],
    ),
    "pypi_token": (["pypi-AgE" + W[:80]], ["pypi-AgE" + W[:20], "pypi-" + W[:80]]),
    "rubygems_key": (["rubygems_" + H[:48]], ["rubygems_" + H[:47], "rubygems_" + H[:49]]),
    "crates_io_token": (["cio" + W[:32]], ["cio" + W[:31], "socio" + W[:32]]),
    "docker_token": (
        ["dckr_pat_" + W[:27], "dckr_oat_" + W[:32]],
        ["dckr_pat_" + W[:10], "dckr_xat_" + W[:27]],
    ),
    "slack_token": (
        ["xox" + "b-123456789012-" + W[:24], "xox" + "p-" + W[:30]],
        ["xox" + "b-1234", "xox" + "z-123456789012-" + W[:24]],
    ),
    "slack_app_token": (["xapp-1-A0123-" + W[:64]], ["xapp-1-A0123", "xapp-x-" + W[:64]]),
    "slack_webhook": (
        ["https://hooks.slack.com/services/T0" + W[:8] + "/B0" + W[:8] + "/" + W[:24]],
        ["https://hooks.slack.com/services/", "https://slack.com/services/" + W[:40]],
    ),
    "discord_bot_token": (
        ["M" + W[:25] + "." + W[:6] + "." + W[:38]],
        ["M" + W[:25] + "." + W[:5] + "." + W[:38], "M" + W[:10] + "." + W[:6] + "." + W[:38]],
    ),
    "discord_webhook": (
        ["https://discord.com/api/webhooks/123456789012345678/" + W[:68]],
        [
            "https://discord.com/api/webhooks/123456789012345678/",
            "https://discord.com/channels/" + W[:68],
        ],
    ),
    "telegram_bot_token": (
        ["123456789:AA" + W[:33]],
        ["123456789:AB" + W[:33], "1234567:AA" + W[:33]],
    ),
    "teams_webhook": (
        [
            "https://a.webhook.office.com/webhookb2/"
            + H[:36]
            + "@"
            + H[:36]
            + "/IncomingWebhook/"
            + H[:32]
        ],
        [
            "https://a.webhook.office.com/webhookb2/",
            "https://webhook.example.com/webhookb2/" + H[:90],
        ],
    ),
    "twilio_key": (["SK" + H[:32]], ["SK" + H[:31], "SK" + H[:33], "RISK" + H[:32]]),
    "sendgrid_key": (
        ["SG." + W[:22] + "." + W[:43]],
        ["SG." + W[:21] + "." + W[:43], "MSG." + W[:22] + "." + W[:43]],
    ),
    "mailgun_key": (["key-" + H[:32]], ["key-" + H[:31], "key-" + H[:33], "monkey-" + H[:32]]),
    "mailchimp_key": (
        [H[:32] + "-us12", H[:32] + "-us1"],
        [H[:31] + "-us12", H[:32] + "-eu12", H[:32] + "-us123"],
    ),
    "stripe_key": (
        ["sk" + "_live_" + W[:24], "rk" + "_live_" + W[:99], "sk" + "_test_" + W[:24]],
        ["pk" + "_live_" + W[:24], "sk" + "_live_" + W[:8]],
    ),
    "stripe_webhook_secret": (["whsec_" + W[:32]], ["whsec_" + W[:12], "whsecx_" + W[:32]]),
    "square_access_token": (["EAAA" + W[:60]], ["EAAA" + W[:59], "EAAA" + W[:61]]),
    "square_secret": (
        ["sq0csp-" + W[:43], "sq0atp-" + W[:22]],
        ["sq0csp-" + W[:12], "sq0xsp-" + W[:43]],
    ),
    "braintree_token": (
        ["access_token$production$" + W[:16] + "$" + H[:32]],
        [
            "access_token$sandbox$" + W[:16] + "$" + H[:32],
            "access_token$production$" + W[:16] + "$" + H[:8],
        ],
    ),
    "shopify_token": (
        ["shpat_" + H[:32], "shpss_" + H[:32]],
        ["shpat_" + H[:31], "shpxx_" + H[:32]],
    ),
    "anthropic_key": (["sk-ant-api03-" + W[:95]], ["sk-ant-" + W[:12], "risk-ant-" + W[:95]]),
    "openai_key": (
        ["sk-proj-" + W[:120], "sk-svcacct-" + W[:40]],
        ["sk-proj-" + W[:12], "sk-project-x"],
    ),
    "openrouter_key": (["sk-or-v1-" + H[:64]], ["sk-or-v1-" + H[:63], "sk-or-v2-" + H[:64]]),
    "model_provider_key": (
        ["sk-" + W[:48], "sk-" + H[:32]],
        ["sk-" + W[:31], "task-" + W[:48], "sk-" + W[:65]],
    ),
    "huggingface_token": (["hf_" + W[:34]], ["hf_" + W[:30], "shf_" + W[:34]]),
    "groq_key": (["gsk_" + W[:52]], ["gsk_" + W[:30], "xgsk_" + W[:52]]),
    "xai_key": (["xai-" + W[:80]], ["xai-" + W[:40], "maxai-" + W[:80]]),
    "perplexity_key": (["pplx-" + W[:48]], ["pplx-" + W[:30], "applx-" + W[:48]]),
    "replicate_token": (["r8_" + W[:37]], ["r8_" + W[:36], "r8_" + W[:38]]),
    "linear_key": (["lin_api_" + W[:40]], ["lin_api_" + W[:12], "lin_key_" + W[:40]]),
    "notion_token": (["ntn_" + W[:46]], ["ntn_" + W[:20], "antn_" + W[:46]]),
    "notion_legacy_token": (
        ["secret_" + W[:43]],
        ["secret_" + W[:42], "secret_" + W[:44], "client_secret_name"],
    ),
    "figma_token": (["figd_" + W[:40]], ["figd_" + W[:12], "figx_" + W[:40]]),
    "airtable_token": (
        ["pat" + W[:14] + "." + H[:64]],
        ["pat" + W[:14] + "." + H[:63], "spat" + W[:14] + "." + H[:64]],
    ),
    "postman_key": (
        ["PMAK-" + H[:24] + "-" + H[:34]],
        ["PMAK-" + H[:24] + "-" + H[:33], "PMAK-" + H[:23] + "-" + H[:34]],
    ),
    "sentry_token": (
        ["sntrys_" + W[:80], "sntryu_" + H[:64]],
        ["sntrys_" + W[:12], "sntryx_" + W[:80]],
    ),
    "grafana_service_token": (
        ["glsa_" + W[:32] + "_" + H[:8]],
        ["glsa_" + W[:32], "glsa_" + W[:32] + "_" + H[:9]],
    ),
    "grafana_cloud_token": (["glc_" + W[:80]], ["glc_" + W[:12], "aglc_" + W[:80]]),
    "newrelic_key": (["NRAK-" + U[:27]], ["NRAK-" + U[:26], "NRAK-" + U[:28]]),
    "age_secret_key": (
        ["AGE-SECRET-KEY-1" + U[:58].replace("B", "C")],
        ["AGE-SECRET-KEY-1" + U[:20], "AGE-PUBLIC-KEY-1" + U[:58]],
    ),
    "jwt": (
        [
            "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0In0." + W[:43],
            '\\"eyJhbGciOiJIUzI1NiJ9.' + "eyJzdWIiOiIxMjM0In0." + W[:43],
        ],
        [
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0",
            "eyJhbGciOiJIUzI1NiJ9." + W[:20] + "." + W[:43],
        ],
    ),
    "private_key": (
        [
            "-----BEGIN RSA "
            + "PRIVATE KEY-----\n"
            + B[:64]
            + "\n"
            + B[:20]
            + "==\n-----END RSA PRIVATE KEY-----",
            "-----BEGIN " + "PRIVATE KEY-----\\n" + B[:64] + "\\n-----END PRIVATE KEY-----",
            "-----BEGIN OPENSSH " + "PRIVATE KEY-----\n" + B[:70],
            "-----BEGIN PGP "
            + "PRIVATE KEY BLOCK-----\n\n"
            + B[:64]
            + "\n-----END PGP PRIVATE KEY BLOCK-----",
            "-----BEGIN RSA "
            + "PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A1B\n\n"
            + B[:64],
        ],
        [
            "-----BEGIN PUBLIC KEY-----\n" + B[:64],
            "-----BEGIN CERTIFICATE-----\n" + B[:64],
            "the PRIVATE KEY is elsewhere",
        ],
    ),
    "bearer_token": (
        [
            "Authorization: Bearer " + W[:40],
            '"authorization":"bearer ' + W[:24] + '"',
            "Bearer%20" + W[:40],
        ],
        ["a bearer of good news", "Bearer ${TOKEN_FROM_ENVIRONMENT}", "Bearer " + W[:12]],
    ),
    "basic_auth": (
        ["Authorization: Basic dXNlcjpwYXNz", '\\"Authorization\\": \\"token ' + H[:20]],
        [
            "basic authorization of users",
            "Authorization: Basic",
            "Authorization: Digest dXNlcjpwYXNz",
        ],
    ),
    "url_password": (
        [
            "postgres://app:s3cr3tpw@db/x",
            "https:\\/\\/u:" + W[:12] + "@host",
            "redis://:hunter22@cache:6379",
        ],
        [
            "https://example.com:8443/a@b",
            "postgres://app:${PW}@db/x",
            "mailto:a@b.example",
            "ssh://git@host/x",
        ],
    ),
    "connection_password": (
        ["Server=db;Uid=sa;Pwd=hunter2;", "driver=x; PWD=S3cret!!"],
        ["PWD=/home/someone", "OLDPWD=/tmp;PWD=/home", "a;Pwd=${PW};"],
    ),
    "password": (
        [
            "password=hunter22",
            '{"password": "correct horse battery"}',
            '{\\"db_password\\":\\"hunter2\\"}',
            "DB_PASSWORD: hunter22",
            "api_key='k-12345'",
            "client-secret=abcdef99",
            "refreshToken: 1//0abcdef",
            "password%3Dhunter22",
            '"apiKey"=>"abcd1234"',
        ],
        [
            "password=",
            '"password": null',
            '"password": ""',
            '"password": "********"',
            "password: ${DB_PASSWORD}",
            "password=<your password>",
            '"password": {"type": "string"}',
            "password: string",
            "api_key: true",
            "the password is wrong",
            "password=[REDACTED:db]",
            "max_tokens: 4096000",
            "PWD=/home/someone",
        ],
    ),
}
