"""isonb in the training loops of other libraries: a module needs the library it is named after, when imported."""
