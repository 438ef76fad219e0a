"""What runs on a node: environments, measuring, and the doorbell that says there is work."""
