"""The instances of components that our own code location loads; `dg scaffold defs` adds others."""
