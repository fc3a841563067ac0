"""TensorRT and TensorRT-RTX, NVIDIA's engines for its GPUs."""
