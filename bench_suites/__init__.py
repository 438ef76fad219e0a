"""The benchmark suites: one file asks one question about PyTorch. Runs inside every target environment (Python
3.9+).
"""
