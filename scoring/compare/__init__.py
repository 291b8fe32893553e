"""Is one Run better than another?"""
