package clients

import (
	"net/http"

	"github.com/redial-go/redial/dialer"
)

// HTTP returns a client of net/http that dials by d. A request that was cancelled
// leaves its dial behind, under a context that never ends: d.MaxElapsed ends it, and
// so does the client's CloseIdleConnections.
//
// TLS comes after the dial, with its own limit (TLSHandshakeTimeout).
func HTTP(d *dialer.Dialer) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = d.DialContext
	return &http.Client{Transport: transport}
}
