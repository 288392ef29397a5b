"""The table of contents: the surfaces of torch that are patched, in the order in which they are applied."""

SURFACES = (
    "device",
    "factories",
    "fused",
    "tensor",
    "nn",
    "storage",
    "generator",
    "cuda",
    "pool",
    "serialization",
    "amp",
    "flagos",
    "exceptions",
    "fallback",
    "distributed",
    "compile",
    "compile_backends",
    "jit",
    "fx",
    "library",
    "profiler",
    "multiprocessing",
    "yaml",
)

# On NVIDIA and HIP builds torch.cuda already is the device: only the name `flagos` is added.
IDENTITY_SURFACES = (
    "device",
    "factories",
    "tensor",
    "storage",
    "generator",
    "amp",
    "flagos",
    "compile",
    "compile_backends",
    "jit",
    "pool",
)
