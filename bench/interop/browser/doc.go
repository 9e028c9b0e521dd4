// Package browser has tests that run in a real Chromium: of conn.WebSocket for js/wasm, through
// the program in the directory peer, and of examples/browser.
package browser
