"""IMPALA: an actor-critic for workers that lag behind the learner."""
