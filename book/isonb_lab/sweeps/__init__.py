"""Many runs: grids, their cost, processes, clusters, and what became of each."""
