"""The window of human mode."""

from __future__ import annotations

import pygame

from soulsgym.errors import MisuseError


class Window:
    """A window that shows pictures at a steady pace."""

    def __init__(self, size: tuple[int, int], title: str, fps: float) -> None:
        try:
            pygame.display.init()
            self._screen = pygame.display.set_mode(size)
        except pygame.error as error:
            raise MisuseError(
                f"no window can be opened here ({error}); use render_mode='rgb_array', or set SDL_VIDEODRIVER=dummy"
            ) from error
        pygame.display.set_caption(title)
        self._clock = pygame.time.Clock()
        self._fps = fps

    def show(self, picture: pygame.Surface) -> bool:
        """Put the picture on the screen and wait for its turn; False once the user has closed the window."""
        if any(event.type == pygame.QUIT for event in pygame.event.get()):
            return False
        self._screen.blit(picture, (0, 0))
        pygame.display.flip()
        self._clock.tick(self._fps)
        return True

    def close(self) -> None:
        """Take the window off the screen."""
        pygame.display.quit()
