"""Numbers of clouds while a model learns."""
