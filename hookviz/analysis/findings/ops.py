"""What ops of torch do with numbers, by the names of their nodes without ``Backward0``."""

VIEWS = frozenset({
    "Permute", "Reshape", "ReshapeAlias", "Squeeze", "T", "Transpose", "UnsafeView", "Unsqueeze", "View",
})  # fmt: skip
"""Ops whose result has the numbers of their input, each once."""
PARTS = frozenset({"AsStrided", "Diagonal", "Select", "Slice", "Split", "SplitWithSizes", "Unbind", "Unfold"})
"""Ops that take a part of a tensor."""
LOGARITHMS = ("Log", "Log2", "Log10")
SOFTMAXES = ("LogSoftmax", "Softmax")
COPIES = frozenset({"Alias", "Clone", "Contiguous", "Expand", "ToCopy"})
"""Ops that copy or repeat the numbers of a tensor."""
PRODUCTS = {"Addmm": ((1, "mat1"), (2, "mat2")), "Bmm": ((0, "self"), (1, "mat2")), "Mm": ((0, "self"), (1, "mat2"))}
"""Matrix product → slot and name of its factors."""
