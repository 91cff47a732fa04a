"""Questions to published tables; `WindowStore` finds windows by key and time, without Spark."""

from windows_pipeline.query.window_store import WindowStore

__all__ = ["WindowStore"]
