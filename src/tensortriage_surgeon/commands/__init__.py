"""The commands ``triage surgeon sanitize``, ``extract`` and ``insert``."""
