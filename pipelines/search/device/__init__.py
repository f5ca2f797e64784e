"""The search on a device, in torch: token passing as tensor operations, many utterances at a time."""
