"""Whether an encoder forgets a fight when the next one begins."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from soulsai.acting.network import mix_random
from soulsai.algorithms.findings import Finding
from soulsai.config.schema import Config
from soulsai.learning.wiring import build_encoder, main_spec
from soulsgym.actions import controls_of
from soulsgym.engine import standard_starts
from soulsgym.parts.encoders import NO_ACTION, Encoder
from soulsgym.sim.engine import SimEngine
from soulsgym.state import action_mask_of

Encodings = npt.NDArray[np.float32]

FIGHTS = 8
FIRST_STEPS = 120
"""Long enough for the boss to have come near and struck, so that there is something to forget."""
SECOND_STEPS = 30
SECOND_SEED = 0
NAMED = 3


def encoder_findings(config: Config) -> Iterator[Finding]:
    """Inputs that differ in the same fight after different ones before it, or after none."""
    if config.world == "gym":
        return
    spec = main_spec(config)
    engine = SimEngine(spec, FIGHTS, phase=config.fight.phase, changes=config.fight.full)
    encoder = build_encoder(config, spec, FIGHTS)
    expected = _encodings(engine, encoder, SECOND_SEED, SECOND_STEPS)
    same = np.ones(encoder.size, np.bool_)
    for first_seed in (1, 2):
        _encodings(engine, encoder, first_seed, FIRST_STEPS)
        same &= _agree(expected, _encodings(engine, encoder, SECOND_SEED, SECOND_STEPS))
    engine.close()
    leaks = [encoder.names[i] for i in np.flatnonzero(~same)]
    if leaks:
        more = f" and {len(leaks) - NAMED} more" if len(leaks) > NAMED else ""
        yield Finding(
            "encoder-not-reset",
            f"encoder {config.encoder.name!r} shows {', '.join(leaks[:NAMED])}{more} of a fight by what was in the one "
            "before; let its begin() forget everything that encode() remembers",
        )


def _agree(one: Encodings, other: Encodings) -> npt.NDArray[np.bool_]:
    """Inputs that are the same at every step of every fight."""
    return np.asarray(((one == other) | (np.isnan(one) & np.isnan(other))).all(axis=(0, 1)))


def _encodings(engine: SimEngine, encoder: Encoder, seed: int, steps: int) -> Encodings:
    """What is seen of fights from their beginning on: steps x fights x inputs. All follows from the seed."""
    generator, everyone = np.random.default_rng(seed), np.ones(FIGHTS, np.bool_)
    engine.reset(everyone, standard_starts(FIGHTS), generator.integers(2**63, size=FIGHTS).astype(np.uint64))
    encoder.begin(engine.fights, everyone)
    actions, out = np.full(FIGHTS, NO_ACTION, np.int64), np.zeros((FIGHTS, encoder.size), np.float32)
    seen = []
    for _ in range(steps):
        encoder.encode(engine.fights, actions, everyone, out)
        seen.append(out.copy())
        actions = mix_random(actions, action_mask_of(engine.fights), np.ones(FIGHTS), generator)
        engine.step(controls_of(actions))
    return np.stack(seen)
