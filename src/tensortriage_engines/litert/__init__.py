"""LiteRT, once TensorFlow Lite."""
