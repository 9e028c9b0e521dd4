// Package node has tests of conn.WebSocket for js/wasm in Node, through the program in the directory
// peer. bench/interop/browser has those in a browser.
package node
