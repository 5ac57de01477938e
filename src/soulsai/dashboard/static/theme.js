// Light or dark before the first paint: what was chosen here, or what the system prefers.
(() => {
  const KEY = "souls.theme";
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const kept = () => {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null; // storage is closed to this page: the system decides
    }
  };
  const apply = (choice) => {
    const dark = choice === "dark" || (choice !== "light" && system.matches);
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    window.dispatchEvent(new Event("themechange"));
  };
  window.soulsTheme = {
    toggle() {
      const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
      try {
        localStorage.setItem(KEY, next);
      } catch {
        // it lasts until the page is closed
      }
      apply(next);
    },
  };
  system.addEventListener("change", () => apply(kept()));
  apply(kept());
})();
