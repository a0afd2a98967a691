// What is shown stands in the address after `#`, so that it can be shared, and the back button works.
// It is not sent to the server when the page is loaded.

/** Return {view, values} of the address, such as #/ask?q=book+a+room&k=10. */
export function current() {
  const [view, query] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return { view: view || "ask", values: Object.fromEntries(new URLSearchParams(query || "")) };
}

export function address(view, values = {}) {
  const given = Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const query = new URLSearchParams(given).toString();
  return `#/${view}${query ? `?${query}` : ""}`;
}

export function go(view, values = {}) {
  const target = address(view, values);
  if (target === location.hash) window.dispatchEvent(new HashChangeEvent("hashchange"));
  else location.hash = target;
}

/** Replace the address without another entry in the history, and without showing anything anew. */
export function note(view, values) {
  history.replaceState(null, "", address(view, values));
}
