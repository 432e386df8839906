"""Bucket sizes."""

from nmt.fast.bucketing import bucket_size, largest_bucket_within


def test_bucket_sizes_are_few_and_near() -> None:
    buckets = [bucket_size(count) for count in range(5000)]
    assert all(count <= bucket <= count + max(count // 8, 0) for count, bucket in enumerate(buckets))
    assert all(bucket_size(bucket) == bucket == largest_bucket_within(bucket) for bucket in buckets)
    assert all(count - count // 8 <= largest_bucket_within(count) <= count for count in range(5000))
    assert buckets[:17] == list(range(17))
    assert len(set(buckets)) < 16 + 8 * 9
