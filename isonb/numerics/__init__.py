"""What the measures compute with: products, scales, distances, neighbours, compiled loops, several processes."""
