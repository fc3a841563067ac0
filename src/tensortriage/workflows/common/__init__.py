"""What many workflows share: engines, feeds, output files, reference checks, judges."""
