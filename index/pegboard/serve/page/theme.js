// Runs before anything is drawn, so that a chosen theme does not flash.
(function () {
  "use strict";
  try {
    const chosen = localStorage.getItem("pegboard-theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch { /* without storage the system's scheme holds */ }
})();
