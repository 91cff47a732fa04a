"""The order of arrival, the arrival log and the watermark that follows from it (rules A1 to A4)."""
