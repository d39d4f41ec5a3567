"""Every SUB_* variable, setting and path, declared once with its documentation."""
