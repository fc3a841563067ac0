"""Inference engines behind two small Protocols; each engine is one module that nothing else imports by name."""
