"""Windows of each row: FLIP-11 frames by rows or by time."""
