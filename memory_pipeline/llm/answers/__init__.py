"""Reading of model answers: cleaning, JSON that fits a schema, list lines with their marks, and unusable answers.
Observing, reflecting and friction share these modules."""
