package drain

import (
	"io"
	"math"
	"net/http"
	"strconv"
	"time"
)

// Ready reports whether the server should get new connections: true until Drain is called.
func (g *Group) Ready() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.phase == serving
}

// ReadyHandler returns a handler for the readiness check of a load balancer. It answers 200 while the Group is
// Ready, and 503 afterwards.
func (g *Group) ReadyHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if g.Ready() {
			io.WriteString(w, "ready\n")
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		io.WriteString(w, "draining\n")
	})
}

// Handler returns a handler that calls h until the window of a drain begins. From then on it answers 503, with
// a random Retry-After in whole seconds: from the Wait of [Options].Advice up to Wait plus Spread, or from 1 up
// to 10 if both are zero.
func (g *Group) Handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if seconds, refused := g.enter(); refused {
			w.Header().Set("Retry-After", strconv.Itoa(seconds))
			w.Header().Set("Connection", "close")
			http.Error(w, "draining", http.StatusServiceUnavailable)
			return
		}
		defer g.leave()
		h.ServeHTTP(w, r)
	})
}

// enter admits a request, or returns after how many seconds it should come again.
func (g *Group) enter() (seconds int, refused bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.phase < window {
		g.handlers++
		return 0, false
	}
	low, high := g.o.Advice.Wait, g.o.Advice.Wait+g.o.Advice.Spread
	if high == 0 {
		low, high = time.Second, 10*time.Second
	}
	wait := low + time.Duration(float64(high-low)*g.rand.Float64())
	return int(max(math.Ceil(wait.Seconds()), 1)), true
}

// leave notes the end of a request.
func (g *Group) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.handlers--
	g.advance()
}
