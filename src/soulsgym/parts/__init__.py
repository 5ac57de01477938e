"""Parts of an environment: encoders, rewards, actions, endings, starts."""
