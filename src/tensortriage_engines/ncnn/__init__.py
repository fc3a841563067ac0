"""ncnn, Tencent's engine for phones."""
