"""Validates kinds of apps, batch, autoscaling and policy; `validation.pods` validates their pod templates."""
