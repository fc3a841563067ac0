"""RKNN, Rockchip's NPUs."""
