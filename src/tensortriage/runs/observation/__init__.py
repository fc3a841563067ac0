"""Questions to an engine as data, observation of its values, and storage of its answers."""
