"""The measured benefit of a model, as shown by `memory run`, `memory status` and README.

The shares of the facts worth keeping that were observed in ten held-out sessions of six people. Careful readers played
the model: they answered its prompts, and their answers went through its checks. Source: benchmarks/README.md, the row
of `python -m benchmarks.observing --strangers --answers DIR`.
"""

NO_MODEL = (
    "none: finds 58 % of the facts a reader would keep, and only explicit words are 🔴; "
    "with a model 88 %: `memory setup`"
)
NO_MODEL_FOR_FRICTION = "Corrections in other words are only grouped with a model: `memory setup`."
