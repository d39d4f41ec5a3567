"""What is wrong inside one rule: its match, its effect."""
