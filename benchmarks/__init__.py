"""What the shim costs: ``python -m benchmarks`` (``make bench``) writes results.md and history.json."""
