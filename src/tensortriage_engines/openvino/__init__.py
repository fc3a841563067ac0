"""Files of OpenVINO, .xml with .bin, given to the engine ``openvino`` with ``file=``."""
