"""Who sits at this machine, as the system knows it: an environment can be set by anyone."""

import os
import pwd


def local_user() -> str:
    """The name of the user whose process this is."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"
