(function () {
  "use strict";
  // Texts are set as texts, never as HTML, whatever a catalog wrote.
  const field = document.getElementById("filter"), agent = document.getElementById("filter-agent");
  const count = document.getElementById("filter-count"), tip = document.getElementById("tip");
  const map = document.querySelector("svg.map");
  const tools = [...document.querySelectorAll("#tools li[data-n]")].map((row) => ({
    row, group: row.closest("details"), words: (row.textContent + " " + row.closest("details").dataset.agent).toLowerCase(),
  }));
  const points = map ? [...map.querySelectorAll("circle")] : [];
  const isOpen = new Map(tools.map((tool) => [tool.group, tool.group.open]));
  let colour = "";

  function apply() {
    const words = field.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const some = words.length > 0 || agent.value !== "";
    const shown = new Set(), groups = new Map();
    for (const tool of tools) {
      const fits = (agent.value === "" || tool.group.dataset.agent === agent.value) && words.every((word) => tool.words.includes(word));
      tool.row.hidden = !fits;
      groups.set(tool.group, (groups.get(tool.group) || 0) + (fits ? 1 : 0));
      if (fits) shown.add(tool.row.dataset.n);
    }
    for (const [group, fitting] of groups) {
      group.hidden = fitting === 0;
      group.open = some ? fitting > 0 : isOpen.get(group);
    }
    count.textContent = some ? `${shown.size.toLocaleString("en")} of ${tools.length.toLocaleString("en")} shown` : "";
    for (const point of points) {
      point.classList.toggle("faint", (some && !shown.has(point.dataset.t)) || (colour !== "" && !point.classList.contains(colour)));
    }
  }
  if (field) {
    document.getElementById("filters").hidden = false;
    document.getElementById("filters").addEventListener("submit", (event) => event.preventDefault());
    field.addEventListener("input", apply);
    agent.addEventListener("change", apply);
    field.addEventListener("keydown", (event) => { if (event.key === "Escape") { field.value = ""; apply(); } });
  }

  for (const button of document.querySelectorAll(".legend button")) {
    button.disabled = false;
    button.addEventListener("click", () => {
      colour = colour === button.dataset.colour ? "" : button.dataset.colour;
      for (const other of document.querySelectorAll(".legend button")) {
        other.setAttribute("aria-pressed", String(colour !== "" && other.dataset.colour === colour));
      }
      apply();
    });
  }

  // The map: the tool nearest to the pointer.
  let picked = null;
  function point(event) {
    const box = map.getBoundingClientRect(), reach = event.pointerType === "mouse" ? 14 : 28;
    let best = null, least = reach * reach;
    for (const circle of points) {
      if (circle.classList.contains("faint")) continue;
      const x = circle.cx.baseVal.value + box.left - event.clientX, y = circle.cy.baseVal.value + box.top - event.clientY;
      if (x * x + y * y <= least) { least = x * x + y * y; best = circle; }
    }
    if (picked) picked.classList.remove("picked");
    picked = best;
    tip.hidden = !best;
    const row = best && document.querySelector(`#tools li[data-n="${best.dataset.t}"]`);
    if (!row) { tip.hidden = true; return; }
    best.classList.add("picked");
    tip.replaceChildren();
    for (const [name, text] of [["b", row.querySelector("b").textContent], ["i", row.closest("details").dataset.agent],
                                ["span", row.querySelector("p") ? row.querySelector("p").textContent : ""]]) {
      const line = document.createElement(name);
      line.textContent = text;
      tip.append(line);
    }
    tip.hidden = false;
    const size = tip.getBoundingClientRect();
    const left = Math.min(Math.max(8, event.clientX + 14), innerWidth - size.width - 8);
    const top = event.clientY + 16 + size.height > innerHeight ? event.clientY - size.height - 12 : event.clientY + 16;
    tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(Math.max(8, top))}px)`;
  }
  function leave() {
    tip.hidden = true;
    if (picked) picked.classList.remove("picked");
    picked = null;
  }
  if (map) {
    map.addEventListener("pointermove", point);
    map.addEventListener("pointerdown", point);
    map.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") leave(); });
    addEventListener("scroll", () => { if (!tip.hidden) leave(); }, { passive: true });
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
