"""What tests share: oracles, cases, pipelines, streams, real services."""
