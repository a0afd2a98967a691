(function () {
  "use strict";
  const values = JSON.parse(document.getElementById("values").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const at = (id) => document.getElementById(id);
  const tip = at("tip");
  const views = {};
  const LISTED = 24, NEAR = 14;

  // A string such as "--accent" in a specification is a property of the style sheet.
  function colour(value) {
    return getComputedStyle(document.documentElement).getPropertyValue(value).trim() || value;
  }
  function themed(specification) {
    return JSON.parse(JSON.stringify(specification), (key, value) =>
      typeof value === "string" && value.startsWith("--") ? colour(value) : value);
  }
  function config() {
    const soft = colour("--ink-soft"), line = colour("--line"), font = getComputedStyle(document.body).fontFamily;
    return {
      background: null, font: font, padding: { left: 2, right: 6, top: 4, bottom: 2 }, view: { stroke: null },
      axis: { labelColor: soft, titleColor: soft, labelFontSize: 12, titleFontSize: 12, titleFontWeight: 400, gridColor: line,
              domain: false, ticks: false, labelPadding: 6, titlePadding: 10, labelLimit: innerWidth < 640 ? 120 : 220 },
      axisBand: { grid: false }, axisPoint: { grid: false }, text: { fontSize: 12, font: font },
    };
  }

  // Texts are set as texts, never as HTML, whatever a catalog wrote.
  function element(name, text, parent) {
    const made = document.createElement(name);
    made.textContent = text;
    if (parent) parent.append(made);
    return made;
  }
  function showTip(x, y, fill) {
    tip.replaceChildren();
    fill();
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const left = Math.min(Math.max(8, x + 14), innerWidth - box.width - 8);
    const top = y + 16 + box.height > innerHeight ? y - box.height - 12 : y + 16;
    tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(Math.max(8, top))}px)`;
  }
  const hideTip = () => { tip.hidden = true; };
  function chartTip(handler, event, item, value) {
    if (value === null || value === undefined || value === "") return hideTip();
    showTip(event.clientX, event.clientY, () => {
      const rows = element("div", "", tip);
      for (const [name, text] of Object.entries(value)) { element("i", name, rows); element("span", text, rows); }
    });
  }

  async function draw(id) {
    const place = at(id);
    if (!place) return;
    const specification = themed(values.charts[id]);
    const isMap = id === "chart-map";
    if (isMap) specification.height = Math.round(Math.min(580, Math.max(340, place.clientWidth * 0.62)));
    if (views[id]) views[id].finalize();
    const made = await vegaEmbed(place, specification, {
      ast: true, actions: false, defaultStyle: false, renderer: isMap ? "canvas" : "svg", config: config(),
      tooltip: isMap ? () => {} : chartTip,
    });
    views[id] = made.view;
    if (isMap) fillMap();
    if (id === "chart-measures") chooseMeasure();
  }
  function chooseMeasure() {
    const view = views["chart-measures"], chosen = at("measure");
    if (view && chosen) view.signal("measure", chosen.value).runAsync();
  }

  // The map: which points are looked at, and which one is pointed at.
  const map = values.map, search = at("map-text"), agent = at("map-agent");
  let tools = [], agents = [], shown = { tools: [], agents: [] };
  function prepareMap() {
    const colours = map.agents.map((one, number) => number % values.colours);
    const small = matchMedia("(max-width: 40rem)").matches;
    tools = map.tools.map((one) => ({
      x: one.x, y: one.y, colour: colours[one.agent], agent: one.agent, name: one.name, owner: map.agents[one.agent].name,
      text: one.description, words: (one.name + "\n" + one.description + "\n" + map.agents[one.agent].name).toLowerCase(),
    }));
    agents = map.agents.map((one, number) => ({
      x: one.x, y: one.y, colour: colours[number], agent: number, name: one.name, owner: one.catalog + ", " + one.tools + " tools",
      text: one.description,
    }));
    const catalogs = new Map();
    map.agents.forEach((one, number) => {
      if (!catalogs.has(one.catalog)) catalogs.set(one.catalog, []);
      catalogs.get(one.catalog).push([one.name + " (" + one.tools + ")", number]);
    });
    for (const [name, own] of catalogs) {
      const group = document.createElement("optgroup");
      group.label = name;
      if (catalogs.size > 1) element("option", "all of " + name, group).value = "catalog:" + name;
      own.sort((one, other) => one[0].localeCompare(other[0]));
      for (const [label, number] of own) element("option", label, group).value = String(number);
      agent.append(group);
    }
    search.addEventListener("input", fillMap);
    agent.addEventListener("change", fillMap);
    at("map-controls").addEventListener("submit", (event) => event.preventDefault());
    const place = at("chart-map");
    place.addEventListener("pointermove", (event) => point(event, NEAR));
    place.addEventListener("pointerdown", (event) => point(event, small ? 2 * NEAR : NEAR));
    place.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") unpoint(); });
    addEventListener("scroll", () => { if (!tip.hidden) unpoint(); }, { passive: true });
  }
  const change = (name, rows) => views["chart-map"].data(name, rows);
  function fillMap() {
    if (!views["chart-map"]) return;
    const words = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean), chosen = agent.value;
    const ofAgent = (number) => chosen === "" ||
      (chosen.startsWith("catalog:") ? map.agents[number].catalog === chosen.slice(8) : String(number) === chosen);
    const found = tools.filter((one) => ofAgent(one.agent) && words.every((word) => one.words.includes(word)));
    const some = found.length < tools.length;
    const owners = new Set(found.map((one) => one.agent));
    shown = { tools: found, agents: agents.filter((one) => owners.has(one.agent)) };
    change("faint", some ? tools : []);
    change("tools", found);
    change("agents", shown.agents);
    change("picked", []).runAsync();
    hideTip();
    const count = (number) => number.toLocaleString("en");
    at("map-count").textContent = some ? `${count(found.length)} of ${count(tools.length)} tools shown` : `${count(tools.length)} tools`;
    const list = at("map-list");
    list.replaceChildren();
    for (const one of some ? found.slice(0, LISTED) : []) {
      const row = element("li", "", list);
      element("b", one.name, row);
      row.append(" ");
      element("span", one.owner, row).className = "agent";
    }
    if (some && found.length > LISTED) element("li", `and ${count(found.length - LISTED)} more`, list);
  }
  let picked = null;
  function point(event, reach) {
    const view = views["chart-map"];
    if (!view) return;
    const box = at("chart-map").querySelector("canvas").getBoundingClientRect(), origin = view.origin();
    const x = event.clientX - box.left - origin[0], y = event.clientY - box.top - origin[1];
    const across = view.scale("x"), down = view.scale("y");
    let best = null, least = reach * reach;
    for (const rows of [shown.agents, shown.tools]) {  // of a tool and the ring around it, the tool
      for (const one of rows) {
        const distance = (across(one.x) - x) ** 2 + (down(one.y) - y) ** 2;
        if (distance <= least) { least = distance; best = one; }
      }
    }
    if (!best) return unpoint();
    if (best !== picked) {
      picked = best;
      change("picked", [{ x: best.x, y: best.y }]).runAsync();
    }
    showTip(event.clientX, event.clientY, () => {
      element("b", best.name, tip);
      element("i", best.owner, tip);
      if (best.text) element("span", best.text, tip).style.display = "block";
    });
  }
  function unpoint() {
    hideTip();
    if (picked && views["chart-map"]) change("picked", []).runAsync();
    picked = null;
  }

  async function drawAll() {
    for (const id of Object.keys(values.charts)) await draw(id);
    document.documentElement.dataset.drawn = dark.matches ? "dark" : "light";
  }
  if (at("measure")) at("measure").addEventListener("change", chooseMeasure);
  if (at("chart-map")) prepareMap();
  if (matchMedia("(max-width: 60rem)").matches) document.querySelector("nav details").open = false;
  dark.addEventListener("change", drawAll);
  drawAll();
})();
