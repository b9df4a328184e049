"""Vietoris-Rips barcodes, the spanning trees they come from, and their entropy."""
