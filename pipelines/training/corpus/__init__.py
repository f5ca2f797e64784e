"""What nets are taught on: sentences, their speech changed at random, features in shards, labels.

How they are taught stands in `pipelines.training`.
"""
