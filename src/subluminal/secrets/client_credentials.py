"""The credentials of agents' clients, which upstream servers do not get unless they are named.

A client passes its whole environment to the servers it starts, including the key of its own model
provider. Servers do not need that key; `pass_env` is for the exception.
"""

CLIENT_CREDENTIALS: dict[str, str] = {
    "ANTHROPIC_API_KEY": "Claude Code, and anything on Anthropic's API",
    "ANTHROPIC_AUTH_TOKEN": "Claude Code behind a gateway",
    "ANTHROPIC_CUSTOM_HEADERS": "Claude Code; often holds a gateway's token",
    "ANTHROPIC_FOUNDRY_API_KEY": "Claude Code on Azure",
    "CLAUDE_CODE_OAUTH_TOKEN": "Claude Code's subscription",
    "CLAUDE_CODE_MESSAGING_TOKEN": "lets its holder talk to the running Claude Code",
    "AWS_BEARER_TOKEN_BEDROCK": "models on Amazon Bedrock",
    "OPENAI_API_KEY": "Codex, and anything on OpenAI's API",
    "OPENAI_ADMIN_KEY": "OpenAI's administration",
    "CODEX_API_KEY": "Codex in CI",
    "CODEX_ACCESS_TOKEN": "Codex in CI",
    "AZURE_OPENAI_API_KEY": "OpenAI's models on Azure",
    "GEMINI_API_KEY": "Gemini CLI",
    "GOOGLE_API_KEY": "Gemini CLI",
    "GOOGLE_GENERATIVE_AI_API_KEY": "opencode and others, on Gemini",
    "COPILOT_GITHUB_TOKEN": "GitHub Copilot CLI",
    "COPILOT_PROVIDER_API_KEY": "GitHub Copilot CLI with your own provider",
    "COPILOT_PROVIDER_BEARER_TOKEN": "GitHub Copilot CLI with your own provider",
    "CURSOR_API_KEY": "Cursor's agent",
    "OPENCODE_API_KEY": "opencode",
    "AMP_API_KEY": "Amp",
    "FACTORY_API_KEY": "Droid",
    "DASHSCOPE_API_KEY": "Qwen Code",
    "OPENROUTER_API_KEY": "models through OpenRouter",
    "MISTRAL_API_KEY": "models of Mistral",
    "GROQ_API_KEY": "models on Groq",
    "XAI_API_KEY": "models of xAI",
    "DEEPSEEK_API_KEY": "models of DeepSeek",
    "MOONSHOT_API_KEY": "models of Moonshot",
    "CEREBRAS_API_KEY": "models on Cerebras",
    "TOGETHER_API_KEY": "models on Together",
    "FIREWORKS_API_KEY": "models on Fireworks",
    "COHERE_API_KEY": "models of Cohere",
}
"""Variables and the programs that they belong to. The documentation lists this table."""
