"""One simulated fight as a Gymnasium environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from soulsgym.actions import ACTION_CONTROLS
from soulsgym.envs.boss_env import FPS, BossEnv, checked_render_mode, checked_speed
from soulsgym.envs.fights import FightBatch, FightSettings
from soulsgym.envs.spaces import limits_of, observation_space

if TYPE_CHECKING:
    from soulsgym.render import FightRenderer


class FightEnv(BossEnv):
    """A fight in the simulator; see the registered ids for what can be set."""

    def __init__(self, settings: FightSettings, *, render_mode: str | None = None, game_speed: float = 1.0) -> None:
        checked_render_mode(render_mode, self.metadata["render_modes"])
        self._fps = FPS * checked_speed(game_speed)
        batch = FightBatch(settings)
        self.settings, self.fight_spec = settings, batch.spec
        self._renderer: FightRenderer | None = None
        super().__init__(batch, observation_space(limits_of(self.fight_spec)), render_mode)

    def close(self) -> None:
        """Close the window, if any."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None
        super().close()

    def _picture(self) -> npt.NDArray[np.uint8] | None:
        """The fight from above."""
        if self._renderer is None:
            from soulsgym.render import FightRenderer

            self._renderer = FightRenderer(self.fight_spec, fps=self._fps)
        record = self._batch.engine.fights[0]
        if self.render_mode == "rgb_array":
            return self._renderer.draw(record, ACTION_CONTROLS[self._last_action])
        self._renderer.show(record, ACTION_CONTROLS[self._last_action])
        return None
