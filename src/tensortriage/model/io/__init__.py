"""From files of unknown origin to checked models and back, with the large weights left in their files."""
