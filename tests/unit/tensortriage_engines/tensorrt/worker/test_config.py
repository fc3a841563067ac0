"""What is asked of a builder: flags, formats, settings, tactic sources, profiles, and the timing cache."""

import enum
import types

import pytest

from tensortriage_engines.tensorrt.worker.config import (
    STEADY_TIMINGS,
    add_profile,
    allow_types,
    configure,
    obey,
    open_timing_cache,
    profiles,
    set_precision,
    tactic_sources,
    timing_cache_bytes,
)
from tensortriage_worker.adapter import AdapterError, AdapterFailure

TRT = types.SimpleNamespace(
    __version__="0",
    BuilderFlag=types.SimpleNamespace(FP16="FP16", INT8="INT8", TF32="TF32"),
    TacticSource=enum.IntEnum("TacticSource", ["CUBLAS", "CUBLAS_LT", "CUDNN"], start=0),
)


class Config:
    def __init__(self):
        self.flags, self.cleared = [], []

    def set_flag(self, flag):
        self.flags.append(flag)

    def clear_flag(self, flag):
        self.cleared.append(flag)


@pytest.mark.parametrize(
    ("options", "flags", "cleared"),
    [
        ({"precision": "fp32"}, [], ["TF32"]),
        ({"precision": "tf32"}, [], []),
        ({"precision": "fp16"}, ["FP16"], []),
        ({"precision": "int8", "fallback": "fp16"}, ["INT8", "FP16"], []),
    ],
)
def test_weak_formats_are_flags(options, flags, cleared):
    config = Config()
    set_precision(TRT, config, options, strong=False)
    assert (config.flags, config.cleared) == (flags, cleared)
    strong = Config()
    set_precision(TRT, strong, options, strong=True)
    assert (strong.flags, strong.cleared) == ([], cleared)


def test_a_format_that_the_release_lacks_is_refused_by_name():
    with pytest.raises(AdapterError, match="weakly typed fp8") as caught:
        set_precision(TRT, Config(), {"precision": "fp8"}, strong=False)
    assert (caught.value.kind, caught.value.slug) == (AdapterFailure.MISSING, "tensorrt-feature-missing")


def test_types_of_a_network_are_allowed_where_strong_typing_is_lacking():
    config = Config()
    allow_types(TRT, config, ["FLOAT", "HALF", "INT32", "INT8"])
    assert config.flags == ["FP16", "INT8"]


@pytest.mark.parametrize(
    ("words", "mask"),
    [("-CUDNN", 0b011), ("-CUDNN+-CUBLAS", 0b010), ("CUBLAS", 0b001), ("cublas+cublas_lt", 0b011), ("", 0b111)],
)
def test_tactic_sources(words, mask):
    assert tactic_sources(TRT, 0b111, words) == mask


def test_an_unknown_tactic_source_lists_the_known_ones():
    with pytest.raises(AdapterError) as caught:
        tactic_sources(TRT, 0b111, "-CUFFT")
    assert "CUBLAS, CUBLAS_LT, CUDNN" in caught.value.cure


def test_shape_ranges_of_options():
    assert profiles({"profile.x": "1x3:2x3:4x3", "profile.s": "7", "device": "0"}) == {
        "x": ((1, 3), (2, 3), (4, 3)),
        "s": ((7,), (7,), (7,)),
    }


@pytest.mark.parametrize(("kinds", "profiles"), [(["CONVOLUTION"], 0), (["CONVOLUTION", "NMS"], 1)])
def test_shapes_that_depend_on_data_need_a_profile_even_where_no_input_is_open(kinds, profiles):
    """8.5.3 on a GPU: "Profile kOPT values are not self-consistent. Assertion profile != nullptr failed"."""
    added = []
    builder = types.SimpleNamespace(create_optimization_profile=object)
    config = types.SimpleNamespace(add_optimization_profile=lambda profile: added.append(profile) or 0)
    tensor = types.SimpleNamespace(name="x", shape=(1, 3), is_shape_tensor=False)
    made = [types.SimpleNamespace(type=types.SimpleNamespace(name=kind)) for kind in kinds]
    net = types.SimpleNamespace(
        num_inputs=1, get_input=lambda index: tensor, num_layers=len(made), get_layer=lambda index: made[index]
    )
    assert add_profile(TRT, builder, config, net, {}) == {}
    assert len(added) == profiles


class Remembering(Config):
    """A builder configuration that remembers, and has the attributes that are named."""

    def __init__(self, **attributes):
        super().__init__()
        self.features, self.quantization, self.cache = {}, [], None
        self.__dict__.update(attributes)

    def set_preview_feature(self, feature, enable):
        self.features[feature] = enable

    def set_quantization_flag(self, flag):
        self.quantization.append(flag)

    def set_memory_pool_limit(self, pool, size):
        self.pool = (pool, size)

    def get_tactic_sources(self):
        return 0b111

    def set_tactic_sources(self, mask):
        self.tactics = mask

    def create_timing_cache(self, content):
        return None if content == b"unreadable" else content

    def set_timing_cache(self, cache, ignore_mismatch):
        self.cache = cache
        return cache != b"other" and not ignore_mismatch

    def get_timing_cache(self):
        return None if self.cache is None else types.SimpleNamespace(serialize=lambda: self.cache)


class Flags:
    """A release that has every flag, named as itself."""

    def __getattr__(self, name):
        return name


EVERY = types.SimpleNamespace(
    **{**vars(TRT), "BuilderFlag": Flags()},
    ProfilingVerbosity=types.SimpleNamespace(DETAILED="d"),
    MemoryPoolType=types.SimpleNamespace(WORKSPACE="workspace"),
    QuantizationFlag=Flags(),
)


def configured(options, *, trt=EVERY, strong=True, **attributes):
    """Return the configuration for options in a release that has the attributes."""
    builder = types.SimpleNamespace(create_builder_config=lambda: Remembering(**attributes))
    return configure(trt, builder, options, strong=strong)


def test_builder_flags_settings_and_features_by_name():
    feature = enum.Enum("PreviewFeature", ["A_0805", "B_0806"])
    trt = types.SimpleNamespace(
        __version__="9", ProfilingVerbosity=types.SimpleNamespace(DETAILED="d"), PreviewFeature=feature,
        BuilderFlag=types.SimpleNamespace(STRIP_PLAN="strip", TF32="tf32"),
        EngineCapability=types.SimpleNamespace(SAFETY="safety"),
    )  # fmt: skip
    builder = types.SimpleNamespace(create_builder_config=lambda: Remembering(engine_capability=None))
    settings = {
        "builder_settings": "engine_capability:safety",
        "preview_features": "a_0805",
    }
    config = configure(trt, builder, {"builder_flags": "strip_plan", **settings}, strong=True)
    assert config.flags == ["strip"]
    assert config.engine_capability == "safety"
    assert config.features == {feature.A_0805: True, feature.B_0806: False}
    assert set(configure(trt, builder, {"preview_features": "none"}, strong=True).features.values()) == {False}
    with pytest.raises(AdapterError, match="DIRECT_IO"):
        configure(trt, builder, {"builder_flags": "DIRECT_IO"}, strong=True)


def test_sizes_counts_and_switches():
    attributes = {"builder_optimization_level": 3, "max_aux_streams": 2, "profiling_verbosity": ""}
    options = {
        "opt_level": "5",
        "max_aux_streams": "1",
        "workspace": "64",
        "tactic_sources": "-CUDNN",
        "avg_timing": "3",
    }
    switches = {"sparse": "true", "refit": "false", "strict_nans": "true", "quantization_flags": "none+calibrate"}
    config = configured({**options, **switches}, **attributes)
    assert (config.builder_optimization_level, config.max_aux_streams, config.avg_timing_iterations) == (5, 1, 3)
    assert (config.pool, config.tactics, config.profiling_verbosity) == (("workspace", 64 << 20), 0b011, "d")
    assert (config.flags, config.quantization) == (["STRICT_NANS", "SPARSE_WEIGHTS"], ["CALIBRATE"])


@pytest.mark.parametrize("option", ["opt_level", "build_route", "max_aux_streams"])
def test_what_the_release_lacks_is_refused_by_the_name_of_the_option(option):
    with pytest.raises(AdapterError, match=option) as caught:
        configured({option: "1"})
    assert (caught.value.kind, caught.value.slug) == (AdapterFailure.MISSING, "tensorrt-feature-missing")


def test_a_value_that_tensorrt_refuses_is_told():
    class Picky(Remembering):
        """Takes levels up to 5."""

        @property
        def builder_optimization_level(self):
            return 3

        @builder_optimization_level.setter
        def builder_optimization_level(self, level):
            raise ValueError(f"no level {level}")

    builder = types.SimpleNamespace(create_builder_config=Picky)
    with pytest.raises(AdapterError, match="builder_optimization_level=9: no level 9") as caught:
        configure(EVERY, builder, {"opt_level": "9"}, strong=True)
    assert (caught.value.kind, caught.value.slug) == (AdapterFailure.USAGE, "engine-option-value")


def test_deterministic_builds_time_often_and_use_one_stream():
    config = configured({"deterministic": "true"}, max_aux_streams=4)
    assert (config.max_aux_streams, config.avg_timing_iterations) == (0, STEADY_TIMINGS)
    assert config.flags == ["DISTRIBUTIVE_INDEPENDENCE"]
    bare = types.SimpleNamespace(**{**vars(EVERY), "BuilderFlag": types.SimpleNamespace()})
    assert configured({"deterministic": "true", "avg_timing": "2"}, trt=bare).avg_timing_iterations == 2
    assert not hasattr(configured({"deterministic": "true"}, trt=bare), "max_aux_streams")


def test_plugins_are_put_into_engines_for_later_releases():
    options = {"plugins": "a.so+b.so", "version_compatible": "true"}
    assert configured(options, plugins_to_serialize=[]).plugins_to_serialize == ["a.so", "b.so"]
    assert configured({"plugins": "a.so"}, plugins_to_serialize=[]).plugins_to_serialize == []
    assert not hasattr(configured(options), "plugins_to_serialize")


@pytest.mark.parametrize(
    ("options", "flag"),
    [({}, "OBEY_PRECISION_CONSTRAINTS"), ({"constraints": "prefer"}, "PREFER_PRECISION_CONSTRAINTS")],
)
def test_precisions_of_layers_bind_unless_they_are_preferred(options, flag):
    config = Config()
    obey(EVERY, config, options)
    assert config.flags == [flag]


def test_no_tactic_source_at_all():
    assert tactic_sources(TRT, 0b111, " none ") == 0


class Profile:
    def __init__(self):
        self.shapes, self.values = {}, {}

    def set_shape(self, name, least, best, most):
        if len(least) != 2:
            raise ValueError("two dimensions")
        self.shapes[name] = (least, best, most)

    def set_shape_input(self, name, least, best, most):
        self.values[name] = (least, best, most)


def profiled(shapes, *, index=0, **inputs):
    """Add a profile for inputs, given as shape and whether it gives shapes; return the profile and what it got."""
    profile = Profile()
    made = [types.SimpleNamespace(name=n, shape=s, is_shape_tensor=values) for n, (s, values) in inputs.items()]
    net = types.SimpleNamespace(num_inputs=len(made), get_input=lambda place: made[place], num_layers=0)
    builder = types.SimpleNamespace(create_optimization_profile=lambda: profile)
    config = types.SimpleNamespace(add_optimization_profile=lambda _: index)
    return profile, add_profile(TRT, builder, config, net, shapes)


def test_open_inputs_have_the_ranges_given_or_size_1():
    given = ((1, 3), (2, 3), (4, 3))
    sizes = ((7,), (8,), (9,))
    profile, used = profiled(
        {"a": given, "s": sizes, "fixed": given},
        a=((-1, 3), False),
        b=((-1, 0), False),
        fixed=((2, 3), False),
        s=((1,), True),
    )
    assert profile.shapes == {"a": given, "b": ((1, 1),) * 3}
    assert profile.values == {"s": ([7], [8], [9])}
    assert used == {"a": given, "b": ((1, 1),) * 3, "s": sizes}


@pytest.mark.parametrize(
    ("shapes", "index", "inputs", "words"),
    [
        ({}, 0, {"s": ((1,), True)}, "its values are needed"),
        ({"a": ((1,),) * 3}, 0, {"a": ((-1, 3), False)}, "two dimensions"),
        ({}, -1, {"a": ((-1, 3), False)}, "does not take its range"),
    ],
)
def test_a_range_that_does_not_fit_is_refused(shapes, index, inputs, words):
    with pytest.raises(AdapterError, match=words) as caught:
        profiled(shapes, index=index, **inputs)
    assert (caught.value.kind, caught.value.slug) == (AdapterFailure.USAGE, "profile-unusable")


def test_a_timing_cache_is_read_or_made_anew(tmp_path):
    path = tmp_path / "cache"
    path.write_bytes(b"times")
    for place, content in ((str(path), b"times"), (str(tmp_path / "absent"), b""), ("", b"")):
        config = Remembering()
        assert open_timing_cache(EVERY, config, place, editable=False, optional=False) == content
        assert (config.flags, timing_cache_bytes(config)) == ([], content)
    assert timing_cache_bytes(Remembering()) == b""
    config = Remembering()
    open_timing_cache(EVERY, config, "", editable=True, optional=False)
    assert config.flags == ["EDITABLE_TIMING_CACHE"]


@pytest.mark.parametrize("content", [b"unreadable", b"other"])
def test_a_timing_cache_that_does_not_fit(tmp_path, content):
    (tmp_path / "cache").write_bytes(content)
    with pytest.raises(AdapterError, match="does not fit") as caught:
        open_timing_cache(EVERY, Remembering(), str(tmp_path / "cache"), editable=False, optional=False)
    assert caught.value.slug == "timing-cache-mismatch"
    assert open_timing_cache(EVERY, Remembering(), str(tmp_path / "cache"), editable=False, optional=True) == b""
