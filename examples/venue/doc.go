// Package venue is a small exchange, for examples/marketdata and examples/browser.
//
//	v := venue.New(nil)
//	defer v.Close()
//	http.Handle("/feed", v)             // the WebSocket
//	http.HandleFunc("/token", v.Token)  // a token for one login
//
// A client sends its token in the header Authorization ("Bearer TOKEN"), or in its first message,
// because a page cannot set a header. When it was welcomed it subscribes to books. It gets a snapshot of each, and after it every update, whose numbers have
// no gap. The methods of a Venue that make trouble are for a drill, or for a test.
//
// The messages and the book are for both sides, so they build for js/wasm too.
package venue
