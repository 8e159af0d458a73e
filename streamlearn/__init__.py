"""Online learning on live streams."""
