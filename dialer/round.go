package dialer

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
)

// plan is what one dialer knows: the endpoints, checked, and what they said.
type plan struct {
	endpoints []*url.URL
	tls       *tls.Config

	shuffle shuffler

	mu     sync.Mutex  // guards what follows; never held while dialling
	known  []knowledge // of each endpoint
	resume []int       // the order in which an interrupted round goes on; nil: none was
}

// knowledge is what an endpoint said last.
type knowledge struct {
	refused bool      // it wants new credentials
	away    time.Time // until when it wants to be left alone
	said    Error     // when it said so
}

// dialFunc tries one endpoint.
type dialFunc func(ctx context.Context, u *url.URL, refresh bool) (conn.Conn, *Error)

// round asks each endpoint once, until one answers or ctx ends.
func (p *plan) round(ctx context.Context, dial dialFunc) (conn.Conn, *Error) {
	order, left := p.order()
	var said []*Error
	for k, i := range order {
		if left[i] != nil {
			said = append(said, left[i])
			continue
		}
		c, e := dial(ctx, p.endpoints[i], p.refresh(i))
		p.note(i, e)
		if e == nil {
			return c, nil
		}
		said = append(said, e)
		if ctx.Err() != nil {
			p.interrupt(order, k)
			return nil, decided(e, said)
		}
		if final := (*prepareError)(nil); errors.As(e, &final) {
			return nil, decided(e, said)
		}
	}
	return nil, sum(said)
}

// order draws the order of a round, or takes that of the last one if it was
// interrupted. Of the endpoints that want to be left alone it returns what they
// said; but if all do, none is left.
func (p *plan) order() (order []int, left []*Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	order, p.resume = p.resume, nil
	if order == nil {
		order = make([]int, len(p.endpoints))
		for i := range order {
			order[i] = i
		}
		p.shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	left = make([]*Error, len(p.endpoints))
	now := time.Now()
	if !slices.ContainsFunc(p.known, func(k knowledge) bool { return !now.Before(k.away) }) {
		return order, left
	}
	for i, k := range p.known {
		if now.Before(k.away) {
			e := k.said
			e.RetryAfter = k.away.Sub(now)
			left[i] = &e
		}
	}
	return order, left
}

// interrupt has the next round begin after the endpoint at k.
func (p *plan) interrupt(order []int, k int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resume = slices.Concat(order[k+1:], order[:k+1])
}

func (p *plan) refresh(i int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known[i].refused
}

// note keeps how endpoint i answered.
func (p *plan) note(i int, e *Error) {
	var k knowledge
	if e != nil {
		k.refused = e.StatusCode == http.StatusUnauthorized
		if e.RetryAfter > 0 {
			k.away, k.said = time.Now().Add(e.RetryAfter), *e
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known[i] = k
}

// hope orders the classes for a round, the most hopeful first.
var hope = []backoff.Class{
	backoff.ClassOverload, backoff.ClassRetry, backoff.ClassRefresh, backoff.ClassSlow, backoff.ClassStop,
}

// sum makes one error of what all endpoints said, as [WebSocket.Dial] and [TCP.Dial] say.
func sum(said []*Error) *Error {
	best, rank, wait := said[0], len(hope), said[0].RetryAfter
	for _, e := range said {
		if r := slices.Index(hope, backoff.Classify(e).Class); r < rank {
			best, rank = e, r
		}
		wait = min(wait, e.RetryAfter)
	}
	e := decided(best, said)
	e.RetryAfter = wait
	return e
}

// decided is the error of a round in which e decides.
func decided(e *Error, said []*Error) *Error {
	if len(said) == 1 {
		return e
	}
	d := *e
	d.Round = said
	return &d
}
