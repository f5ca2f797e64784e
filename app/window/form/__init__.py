"""The settings as a form, made from their declarations in `pipelines.config`. No setting is named here."""
