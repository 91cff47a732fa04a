"""The order of arrival, the arrival log and the watermark (rules A1 to A4)."""
