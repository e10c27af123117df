"""The atlas of hooks: what each way to register a hook does, observed in several versions of torch."""
