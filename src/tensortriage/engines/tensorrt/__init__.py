"""TensorRT and TensorRT-RTX, in a worker process."""
