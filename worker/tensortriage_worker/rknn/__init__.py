"""RKNN, Rockchip's converter and simulator of its NPUs."""
