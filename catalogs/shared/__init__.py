"""What all kinds of sources share."""
