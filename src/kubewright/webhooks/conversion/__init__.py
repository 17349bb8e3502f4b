"""Conversion webhooks: declared converters between the versions of a kind, and the ConversionReviews they answer."""
