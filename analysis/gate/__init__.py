"""Whether a pipeline goes on: policy, baseline, outcome, and the files that pipelines read."""
