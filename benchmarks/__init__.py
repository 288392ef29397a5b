"""What the shim costs: ``python -m benchmarks`` (or ``make bench``) measures, and writes results.md and history.json."""
