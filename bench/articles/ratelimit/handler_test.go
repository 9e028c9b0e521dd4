package ratelimit_test

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/redial-go/redial/bench/articles/ratelimit"
)

// handler is a limited API over HTTP: 204 for a call that is allowed, else 429, with
// Retry-After if the limit says so. Make it with newHandler. It is safe for concurrent
// use.
type handler struct {
	began time.Time

	mu  sync.Mutex // guards what follows
	api *ratelimit.API
}

// newHandler returns an API whose first window begins now.
func newHandler(l ratelimit.Limit) (*handler, error) {
	api, err := l.New()
	if err != nil {
		return nil, err
	}
	return &handler{began: time.Now(), api: api}, nil
}

// ServeHTTP answers one call.
func (h *handler) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	ok, after := h.call()
	if ok {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(after/time.Second)))
	}
	w.WriteHeader(http.StatusTooManyRequests)
}

func (h *handler) call() (ok bool, after time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.api.Call(time.Since(h.began))
}
