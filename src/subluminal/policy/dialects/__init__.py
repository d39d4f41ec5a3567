"""Other systems' policies, converted to bundles. A dialect adds no matcher and decides nothing."""
