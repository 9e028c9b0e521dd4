"use strict";
// The server renders everything, and sends the parts that have changed. This script puts them
// into the page, and lets the clocks and countdowns run between.
(() => {
  const body = document.body, live = document.getElementById("live"), pause = document.getElementById("pause");
  let ahead = Number(body.dataset.now) - Date.now(); // of the program's clock
  let source = null, paused = false, retry = 0;

  // query is what the page asks for, with one more word or none.
  function query(word) {
    const q = new URLSearchParams(location.search);
    if (word) q.set(word, "");
    return "?" + q;
  }

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

  function disconnect() {
    if (source) source.close();
    source = null;
    clearTimeout(retry);
  }

  // connect begins the updates. A hidden page has none, because a browser has six connections to a program
  // at most, and a seventh tab would never load.
  function connect() {
    disconnect();
    if (paused) return;
    if (document.hidden) { say("", "not live while hidden"); return; }
    const mine = source = new EventSource(query("live"));
    source.onopen = () => say("on", "live");
    source.onmessage = (e) => { say("on", "live"); update(JSON.parse(e.data)); };
    source.onerror = () => {
      if (mine.readyState === EventSource.CLOSED) reload(mine); // the program has refused
      else say("off", "not live: the program does not answer");
    };
  }

  // reload loads the page again and keeps what the user does, until there is a place for updates.
  async function reload(mine) {
    try {
      const answer = await fetch(query(), { cache: "no-store" });
      if (!answer.ok && answer.status !== 404) throw new Error(answer.statusText);
      const other = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (source !== mine) return; // paused, hidden or connected meanwhile
      const rows = other.getElementById("rows"), parts = {};
      for (const id of ["about", "summary", "others", "pager", "detail"]) {
        const e = other.getElementById(id);
        if (e) parts[id] = e.innerHTML;
      }
      for (const row of rows ? rows.children : []) parts[row.id] = row.outerHTML;
      say("on", "loaded again every 5 s: too many pages are open");
      update({ boot: other.body.dataset.boot, now: Number(other.body.dataset.now), parts, order: rows && [...rows.children].map((row) => row.id) });
    } catch {
      if (source !== mine) return;
      say("off", "not live: the program does not answer");
    }
    retry = setTimeout(connect, 4500 + 1000 * Math.random());
  }

  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Go on" : "Pause";
    if (!paused) { connect(); return; }
    disconnect();
    say("", "paused");
  });
  document.addEventListener("visibilitychange", connect);
  connect();
  setInterval(tick, 100);
  tick();

  const form = document.getElementById("search"), q = document.getElementById("q");
  let typing = 0;
  function search() {
    const asked = new URLSearchParams(new FormData(form));
    if (!asked.get("q")) asked.delete("q");
    history.replaceState(null, "", "?" + asked);
    document.querySelector("footer a").href = asked.size ? "?" + asked + "&json" : "?json";
    if (!paused) connect(); else location.reload();
  }
  form?.addEventListener("submit", (e) => { e.preventDefault(); clearTimeout(typing); search(); });
  q?.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(search, 250); });
})();
