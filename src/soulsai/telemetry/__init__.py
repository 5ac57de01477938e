"""What a run tells while it runs: metrics and where they go, where the time goes, and a log."""
