(function () {
  "use strict";
  // Texts are set as texts, never as HTML, whatever a catalog wrote.
  const field = document.getElementById("filter"), agent = document.getElementById("filter-agent");
  const count = document.getElementById("filter-count");
  const tools = [...document.querySelectorAll("#tools li")].map((row) => ({
    row, group: row.closest("details"), words: (row.textContent + " " + row.closest("details").dataset.agent).toLowerCase(),
  }));
  const isOpen = new Map(tools.map((tool) => [tool.group, tool.group.open]));

  function apply() {
    const words = field.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const some = words.length > 0 || agent.value !== "";
    const groups = new Map();
    let shown = 0;
    for (const tool of tools) {
      const fits = (agent.value === "" || tool.group.dataset.agent === agent.value) && words.every((word) => tool.words.includes(word));
      tool.row.hidden = !fits;
      groups.set(tool.group, (groups.get(tool.group) || 0) + (fits ? 1 : 0));
      if (fits) shown += 1;
    }
    for (const [group, fitting] of groups) {
      group.hidden = fitting === 0;
      group.open = some ? fitting > 0 : isOpen.get(group);
    }
    count.textContent = some ? `${shown.toLocaleString("en")} of ${tools.length.toLocaleString("en")} shown` : "";
  }
  if (field) {
    document.getElementById("filters").hidden = false;
    document.getElementById("filters").addEventListener("submit", (event) => event.preventDefault());
    field.addEventListener("input", apply);
    agent.addEventListener("change", apply);
    field.addEventListener("keydown", (event) => { if (event.key === "Escape") { field.value = ""; apply(); } });
  }

  // A link into a closed list opens it.
  function reveal() {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.closest("details")) target.closest("details").open = true;
  }
  addEventListener("hashchange", reveal);
  reveal();
  document.documentElement.dataset.ready = "yes";
})();
