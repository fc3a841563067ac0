"""RKNN: Rockchip's converter and the simulator of its NPUs, in a worker."""
