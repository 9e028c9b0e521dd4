// Package venue is a small exchange, for examples/marketdata and examples/browser.
//
//	v := venue.New(nil)
//	defer v.Close()
//	http.Handle("/feed", v)             // the WebSocket
//	http.HandleFunc("/token", v.Token)  // a token for one login
//
// A client sends its token in the header Authorization ("Bearer TOKEN"), or in its first message,
// because a page cannot set a header. After the welcome it subscribes to books. It gets a snapshot of
// each, and then every update; the numbers of the updates have no gap. Some methods of a Venue make
// trouble, for a drill or a test. The messages and the book build for js/wasm too.
package venue
