"""Every SUB_* variable, every setting and every place, declared once with its documentation."""
