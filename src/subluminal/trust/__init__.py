"""Who is acting, and how far that can be believed."""
