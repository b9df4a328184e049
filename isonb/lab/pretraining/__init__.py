"""How the embedded model ``tiny`` was made."""
