"use strict";
// Draws what the program knows, ten times a second at most, and not while the page is hidden.

// add adds an element to parent, at its end.
function add(parent, tag, className = "", text = "") {
  const e = document.createElement(tag);
  if (className) e.className = className;
  e.textContent = text;
  parent.append(e);
  return e;
}

// set sets a text if it has changed.
function set(element, text) {
  if (element.textContent !== String(text)) element.textContent = text;
}

// note adds a line to the list of events, the newest first. The program calls it too.
function note(kind, text) {
  const list = document.getElementById("events");
  const line = document.createElement("li");
  line.className = kind;
  add(line, "time", "", new Date().toLocaleTimeString("en-GB") + "." + String(Date.now() % 1000).padStart(3, "0"));
  add(line, "span", "", text);
  list.prepend(line);
  if (kind === "seam") seams++;
  while (list.childElementCount > 64) list.lastElementChild.remove();
}
let seams = 0;

const cents = (price) => (price / 100).toFixed(2);

// side returns the six best levels of a side, the best first.
function side(levels, direction) {
  return Object.entries(levels).sort((a, b) => direction * (a[0] - b[0])).slice(0, 6);
}

// drawBook draws a book. It is live only if the connection is ready and nothing is missing in it.
function drawBook(symbol, ready) {
  let card = document.getElementById(symbol);
  if (!card) {
    card = add(document.getElementById("books"), "article");
    card.id = symbol;
    const head = add(card, "header");
    add(head, "h2", "", symbol);
    add(head, "span", "badge");
    add(card, "div", "ladder");
    add(card, "footer");
  }
  const book = redial.book(symbol), bids = side(book.bids, -1), asks = side(book.asks, +1);
  const state = book.seq === 0 ? "no data yet" : book.stale || !ready ? "stale" : "live";
  const className = state === "live" ? "live" : "stale";
  if (card.className !== className) card.className = className;
  set(card.querySelector(".badge"), state);
  set(card.querySelector("footer"), `update ${book.seq} · session ${book.session}`);
  const ladder = card.querySelector(".ladder");
  ladder.replaceChildren();
  const row = (kind, [price, size]) => {
    const line = add(ladder, "div", "row " + kind);
    add(line, "i").style.width = size * 8 + "%"; // of 9 at most
    add(line, "span", "", cents(price));
    add(line, "span", "", size);
  };
  asks.toReversed().forEach((level) => row("ask", level)); // the best ask is the lowest line of its side
  add(ladder, "div", "spread", bids.length && asks.length ? "spread " + cents(asks[0][0] - bids[0][0]) : "");
  bids.forEach((level) => row("bid", level));
}

function draw() {
  if (globalThis.redial) {
    const status = redial.status();
    for (const id of ["state", "detail", "session", "received", "dials", "probes"]) set(document.getElementById(id), status[id]);
    set(document.getElementById("seams"), seams);
    document.getElementById("state").className = "pill " + status.state;
    for (const symbol of redial.symbols) drawBook(symbol, status.state === "ready");
  }
  setTimeout(() => requestAnimationFrame(draw), 100);
}
draw();
