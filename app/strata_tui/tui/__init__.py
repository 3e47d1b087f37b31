"""The console: textual lives here and nowhere else."""
