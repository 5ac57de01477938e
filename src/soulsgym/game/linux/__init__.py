"""How the game layer does it on Linux, where the game runs under Wine or Proton."""
