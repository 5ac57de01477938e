"""Parts that environments are put together from: rewards and starts."""
