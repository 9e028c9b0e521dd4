package dialer

import (
	"errors"
	"net"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/redial-go/redial/reconnect/backoff/schedule"
)

// hangs remembers the endpoints and addresses at which a handshake hangs, or hung until
// it was given up, so that others are tried first. Otherwise an address that accepts
// connections and never answers would be chosen again and again. A place is forgotten
// when it answers, or after forgetHang.
type hangs struct {
	mu     sync.Mutex // guards what follows
	places []hang     // few: a dialer knows an endpoint or two, and their addresses
}

// hang is what is known of a place. It is there only while something is known.
type hang struct {
	place string
	begun []time.Time // when the handshakes began that have not been answered yet
	until time.Time   // the last one was given up; the place is avoided until then
}

const (
	// hangAfter is how long a handshake may last before it counts as hanging.
	hangAfter = 3 * time.Second

	// forgetHang is how long a place is avoided, so that a server which hung once is
	// used again, even if others serve as well.
	forgetHang = 10 * time.Minute
)

// begin notes that handshakes at these places begin. The caller calls end when they end.
func (h *hangs) begin(places ...string) (end func(ended, err error)) {
	now := time.Now()
	h.update(places, func(p *hang) { p.begun = append(p.begun, now) })
	return func(ended, err error) {
		h.update(places, func(p *hang) {
			i := slices.Index(p.begun, now)
			p.begun = slices.Delete(p.begun, i, i+1)
			switch {
			case err == nil || ended == nil: // an answer, or the end of the connection
				p.until = time.Time{}
			case isHang(ended):
				p.until = time.Now().Add(forgetHang)
			}
		})
	}
}

// isHang reports whether a context ended because a handshake took too long.
func isHang(ended error) bool {
	_, limit := ended.(*limitError)
	return limit || errors.Is(ended, schedule.ErrHung)
}

// update changes what is known of places.
func (h *hangs) update(places []string, change func(*hang)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.places == nil {
		h.places = make([]hang, 0, len(places))
	}
	for _, place := range places {
		i := h.find(place)
		if i < 0 {
			h.places = append(h.places, hang{place: place})
			i = len(h.places) - 1
		}
		change(&h.places[i])
	}
	h.tidy(time.Now())
}

// find returns the index of place, or -1 if nothing is known of it.
func (h *hangs) find(place string) int {
	return slices.IndexFunc(h.places, func(p hang) bool { return p.place == place })
}

// tidy removes the places of which nothing is known any more, those too that are never dialed
// again, because the name of a host has other addresses now.
func (h *hangs) tidy(now time.Time) {
	h.places = slices.DeleteFunc(h.places, func(p hang) bool { return len(p.begun) == 0 && !now.Before(p.until) })
	if len(h.places) == 0 {
		h.places = nil // because a connection may last for long
	}
}

// at reports whether a handshake at the place hangs, or hung not long ago.
func (h *hangs) at(place string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	h.tidy(now)
	i := h.find(place)
	if i < 0 {
		return false
	}
	p := &h.places[i]
	return len(p.begun) > 0 && now.Sub(p.begun[0]) >= hangAfter || now.Before(p.until)
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
