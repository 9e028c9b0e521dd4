package dialer

import (
	"errors"
	"maps"
	"net"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// hangs remembers the endpoints that could not be connected to in time, and the endpoints and
// addresses at which a handshake hangs, or hung until it was given up, so that others are tried
// first. Otherwise an endpoint that drops packets, or that accepts connections and never answers, would be
// chosen repeatedly. A place is forgotten when a handshake is answered there, whatever the answer is, or
// after forgetHang.
type hangs struct {
	mu     sync.Mutex // guards what follows
	places map[string]hang
}

// hang is a place at which a handshake is in progress, or at which a dial was given up not long ago.
type hang struct {
	begun []time.Time // when the handshakes began that have not been answered yet
	until time.Time   // the place is avoided until then, because a dial was given up
}

const (
	// hangAfter is how long a handshake may last before it counts as hanging.
	hangAfter = 3 * time.Second

	// forgetHang is how long a place is avoided, so that a server which hung once is
	// used again, even if others serve as well. Until it has answered, an endpoint that is tried again has only
	// briefConnect to connect.
	forgetHang = 10 * time.Minute
)

// unreachable notes that connecting to the place took too long.
func (h *hangs) unreachable(place string) {
	h.update([]string{place}, func(p *hang) { p.until = time.Now().Add(forgetHang) })
}

// begin notes that handshakes at these places begin. The caller calls end when they end.
func (h *hangs) begin(places ...string) (end func(ended, err error)) {
	now := time.Now()
	h.update(places, func(p *hang) { p.begun = append(p.begun, now) })
	return func(ended, err error) {
		h.update(places, func(p *hang) {
			i := slices.Index(p.begun, now)
			p.begun = slices.Delete(p.begun, i, i+1)
			_, limit := ended.(*limitError)
			switch {
			case err == nil || ended == nil: // an answer, or the end of the connection
				p.until = time.Time{}
			case limit || errors.Is(ended, backoff.ErrHung):
				p.until = time.Now().Add(forgetHang)
			}
		})
	}
}

// update changes the hangs at places.
func (h *hangs) update(places []string, change func(*hang)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.places == nil {
		h.places = make(map[string]hang, len(places))
	}
	for _, place := range places {
		p := h.places[place]
		change(&p)
		h.places[place] = p
	}
	h.tidy()
}

// tidy removes the places of which nothing is known any more, those too that are never dialed
// again, because the name of a host has other addresses now.
func (h *hangs) tidy() {
	now := time.Now()
	maps.DeleteFunc(h.places, func(_ string, p hang) bool { return len(p.begun) == 0 && !now.Before(p.until) })
	if len(h.places) == 0 {
		h.places = nil // because a connection may last for long
	}
}

// at reports whether a handshake at the place hangs, or hung not long ago.
func (h *hangs) at(place string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tidy()
	p := h.places[place]
	return len(p.begun) > 0 && time.Since(p.begun[0]) >= hangAfter || time.Now().Before(p.until)
}

// endpointPlace returns the place of an endpoint.
func endpointPlace(u *url.URL) string { return u.Scheme + "://" + hostPort(u) }

// places returns the places of a handshake with u over nc.
func places(u *url.URL, nc net.Conn) []string {
	list := []string{endpointPlace(u)}
	if a := nc.RemoteAddr(); a != nil { // a connection of the user's may have none
		list = append(list, a.String())
	}
	return list
}
