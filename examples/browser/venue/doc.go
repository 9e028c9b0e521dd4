// Package venue is a small exchange for pages, like that of examples/marketdata.
//
//	v := venue.New(nil)
//	defer v.Close()
//	http.Handle("/feed", v)             // the WebSocket
//	http.HandleFunc("/token", v.Token)  // a token for one login
//
// A client sends its token in its first message, because a page cannot set a header. Then it
// subscribes to books. It gets a snapshot of each, and after it every update, whose numbers have
// no gap. The methods of a Venue that make trouble are for a drill, or for a test.
//
// The messages and the book are for both sides, so they build for js/wasm too.
package venue
