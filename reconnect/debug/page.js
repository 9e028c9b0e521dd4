"use strict";
// The server renders everything, and sends the parts that have changed. This script puts them
// into the page, and lets the clocks and countdowns run between.
(() => {
  const body = document.body, live = document.getElementById("live"), pause = document.getElementById("pause");
  let ahead = Number(body.dataset.now) - Date.now(); // of the program's clock
  let source = null, paused = false, retry = 0;

  // text formats milliseconds as the server formats durations.
  function text(ms) {
    const s = Math.max(ms, 0) / 1000, m = Math.floor(s / 60), h = Math.floor(m / 60);
    if (s < 10) return (Math.floor(s * 10) / 10).toFixed(1) + " s";
    if (s < 120) return Math.floor(s) + " s";
    if (h < 1) return m + " min";
    if (h < 24) return h + " h " + m % 60 + " min";
    return Math.floor(h / 24) + " d " + h % 24 + " h";
  }

  function tick() {
    if (paused || body.classList.contains("stale")) return;
    const now = Date.now() + ahead;
    for (const e of document.querySelectorAll("[data-until]")) {
      const left = Number(e.dataset.until) - now;
      const t = left > 0 ? "in " + text(left) : "now";
      if (e.textContent !== t) e.textContent = t;
    }
    for (const e of document.querySelectorAll("[data-since]")) {
      const age = now - Number(e.dataset.since);
      const t = age < 10000 ? Math.max(Math.floor(age / 1000), 0) + " s" : text(age);
      if (e.textContent !== t) e.textContent = t;
    }
  }

  function say(state, t) {
    live.className = "live " + state;
    if (live.textContent !== t) live.textContent = t;
    body.classList.toggle("stale", state === "off");
  }

  // parse returns the elements of a piece of HTML, which the server has escaped.
  function parse(html) {
    const t = document.createElement("template");
    t.innerHTML = html;
    return t.content;
  }

  function update(message) {
    if (message.boot !== body.dataset.boot) { location.reload(); return; } // the program was restarted
    ahead = message.now - Date.now();
    const rows = document.getElementById("rows");
    for (const [id, html] of Object.entries(message.parts || {})) put(rows, id, html);
    if (rows && message.order) order(rows, message.order);
    tick();
  }

  // put replaces a row, or the content of another part. The focus stays.
  function put(rows, id, html) {
    const at = document.getElementById(id);
    const focus = at && at.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    if (rows && html.startsWith("<tr")) {
      const row = parse(html).firstElementChild;
      if (at) at.replaceWith(row); else rows.append(row);
    } else at?.replaceChildren(parse(html));
    if (focus !== null) document.getElementById(id).querySelector('a[href="' + CSS.escape(focus) + '"]')?.focus();
  }

  // order makes the rows those of ids, in that order. A row that is in its place stays.
  function order(rows, ids) {
    const focused = document.activeElement?.closest("#rows tr")?.id;
    const wanted = new Set(ids);
    for (const row of [...rows.children]) if (!wanted.has(row.id)) row.remove();
    ids.forEach((id, i) => {
      const row = document.getElementById(id);
      if (row && rows.children[i] !== row) rows.insertBefore(row, rows.children[i] || null);
    });
    if (focused && document.activeElement === body) document.getElementById(focused)?.querySelector("a")?.focus();
  }

  function connect() {
    if (source) source.close();
    clearTimeout(retry);
    const query = new URLSearchParams(location.search);
    query.set("live", "");
    source = new EventSource("?" + query);
    source.onopen = () => say("on", "live");
    source.onmessage = (e) => { say("on", "live"); update(JSON.parse(e.data)); };
    source.onerror = () => {
      say("off", "not live: the program does not answer, or has too many viewers");
      if (source.readyState === EventSource.CLOSED) retry = setTimeout(connect, 3000 + 2000 * Math.random());
    };
  }

  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Go on" : "Pause";
    if (!paused) { connect(); return; }
    source.close();
    clearTimeout(retry);
    say("", "paused");
  });
  connect();
  setInterval(tick, 100);
  tick();

  const form = document.getElementById("search"), q = document.getElementById("q");
  let typing = 0;
  function search() {
    const query = new URLSearchParams(new FormData(form));
    if (!query.get("q")) query.delete("q");
    history.replaceState(null, "", "?" + query);
    document.querySelector("footer a").href = query.size ? "?" + query + "&json" : "?json";
    if (!paused) connect(); else location.reload();
  }
  form?.addEventListener("submit", (e) => { e.preventDefault(); clearTimeout(typing); search(); });
  q?.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(search, 250); });
})();
