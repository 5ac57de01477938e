"""What crosses a process boundary: experience from workers to the learner, policies back."""
