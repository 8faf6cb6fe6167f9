"""What each paper's configuration may say: one module, named by the slug, with a ``Settings`` model."""
