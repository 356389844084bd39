// The theme that was chosen is set before anything is drawn; no choice means the system's.
"use strict";
(() => {
  let chosen = "";
  try {
    chosen = localStorage.getItem("trireme-theme") || "";
  } catch {
    // Without a store the choice lasts as long as the page.
  }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
