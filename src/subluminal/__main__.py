"""`python -m subluminal` is `sub`."""

from subluminal.cli.main import main

raise SystemExit(main())
