"""The predicates a rule can be made of, one file a family. Pure."""
