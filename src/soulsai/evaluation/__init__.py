"""Honest evaluation: win rates on unseen seeds with intervals, why fights are lost, reports and videos."""

from soulsai.evaluation.compare import Comparison, compare
from soulsai.evaluation.evaluate import evaluate
from soulsai.evaluation.evaluation import Evaluation, EvaluationSettings
from soulsai.evaluation.fighter import Fighter, PhaseFighters, ScriptedFighter

__all__ = [
    "Comparison",
    "Evaluation",
    "EvaluationSettings",
    "Fighter",
    "PhaseFighters",
    "ScriptedFighter",
    "compare",
    "evaluate",
]
