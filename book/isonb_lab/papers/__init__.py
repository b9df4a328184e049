"""What the book asks of each paper and study: arms, claims and the runs that judge them."""
