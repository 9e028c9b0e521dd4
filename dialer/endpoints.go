package dialer

//lint:file-ignore ST1005 the texts of Validate begin with the name of an option

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
)

// endpoints are what all dials of one [WebSocket] or [Framed] share: where they go, how
// they get there, and how each endpoint answered last.
type endpoints struct {
	dialContext      dialContext // nil: a socket made by tcp
	tcp              *TCPOptions
	connectTimeout   time.Duration // 0: see limitsFor
	handshakeTimeout time.Duration // 0: see limitsFor

	urls    []*url.URL
	shuffle shuffler
	hangs   hangs

	mu      sync.Mutex      // guards what follows
	tls     *tls.Config     // a copy of the user's; nil: the zero Config, or configs are made
	configs *tlsConfigs     // nil: not needed yet
	states  []endpointState // by the index of the URL; nil: no endpoint has said anything to remember
	resume  []int           // the order in which an interrupted round goes on; nil: none was interrupted
}

// settings are the options that [WebSocket] and [Framed] have in common.
type settings struct {
	tls              *tls.Config // a copy; nil: the zero Config
	dialContext      dialContext // nil: a socket made by tcp
	tcp              *TCPOptions
	connectTimeout   time.Duration // 0: see limitsFor
	handshakeTimeout time.Duration // 0: see limitsFor
	conn             interface{ Validate() error }
	source           rand.Source // nil: the functions of math/rand/v2
}

// endpointState is how an endpoint answered last.
type endpointState struct {
	refused bool      // it refused our credentials
	until   time.Time // it asked us to stay away until then
	err     *Error    // its answer, if it did
}

// parseEndpoints parses what is in one of two options; the other must be empty.
func parseEndpoints(name, single, names string, many []string, parse func(string) (*url.URL, error)) ([]*url.URL, error) {
	switch {
	case single != "" && len(many) > 0:
		return nil, fmt.Errorf("%s and %s: want one of them", name, names)
	case single != "":
		u, err := parse(single)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return []*url.URL{u}, nil
	case len(many) == 0:
		return nil, fmt.Errorf("%s: missing", name)
	}
	var urls []*url.URL
	for i, raw := range many {
		u, err := parse(raw)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", names, i, err)
		}
		urls = append(urls, u)
	}
	return urls, nil
}

// newEndpoints checks the settings and completes them. Its error names the option that is
// wrong.
func newEndpoints(urls []*url.URL, s settings) (*endpoints, error) {
	switch {
	case s.connectTimeout < 0:
		return nil, fmt.Errorf("ConnectTimeout: %v is negative", s.connectTimeout)
	case s.handshakeTimeout < 0:
		return nil, fmt.Errorf("HandshakeTimeout: %v is negative", s.handshakeTimeout)
	}
	if err := s.tcp.validate(); err != nil {
		return nil, fmt.Errorf("TCP.%w", err)
	}
	if err := s.conn.Validate(); err != nil {
		return nil, fmt.Errorf("Conn: %w", err)
	}
	return &endpoints{
		dialContext:      s.dialContext,
		tcp:              s.tcp,
		connectTimeout:   s.connectTimeout,
		handshakeTimeout: s.handshakeTimeout,
		urls:             urls,
		tls:              s.tls,
		shuffle:          newShuffler(new(sync.Mutex), s.source),
	}, nil
}

// tlsConfigs returns the TLS configurations. They are made at first use, because a dialer of
// ws:// needs none.
func (e *endpoints) tlsConfigs() *tlsConfigs {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.configs == nil {
		e.configs, e.tls = newTLSConfigs(e.tls, e.urls), nil
	}
	return e.configs
}

// connectTo connects to addr and taps the connection.
func (e *endpoints) connectTo(ctx context.Context, w *conn.Wire, addr string) (net.Conn, error) {
	var nc net.Conn
	var err error
	if e.dialContext != nil {
		nc, err = notNil(e.dialContext(ctx, "tcp", addr))
	} else {
		nc, err = e.tcp.forMessages().dial(ctx, e.shuffle, e.hangs.at, "tcp", addr)
	}
	if err != nil {
		return nil, err
	}
	return w.Tap(nc), nil
}

// hosts returns the text of [WebSocket.Host] and [Framed.Host].
func (e *endpoints) hosts() string {
	var hosts []string
	for _, u := range e.urls {
		hosts = append(hosts, hostPort(u))
	}
	slices.Sort(hosts)
	return strings.Join(slices.Compact(hosts), ",")
}

// text returns the text of [WebSocket.Endpoint] and [Framed.Endpoint].
func (e *endpoints) text() string {
	texts := make([]string, len(e.urls))
	for i, u := range e.urls {
		texts[i] = redacted(u)
	}
	return strings.Join(texts, ", ")
}

// dialEndpoint makes one attempt at u. If refresh is set, the endpoint has refused our
// credentials.
type dialEndpoint func(ctx context.Context, u *url.URL, refresh bool) (conn.Conn, *Error)

// dial is one round: it asks each endpoint once, until one answers or ctx ends.
func (e *endpoints) dial(ctx context.Context, dial dialEndpoint) (conn.Conn, error) {
	order, away := e.order()
	var errs []*Error
	for k, i := range order {
		if away != nil && away[i] != nil {
			errs = append(errs, away[i])
			continue
		}
		c, err := e.dialOne(ctx, i, dial)
		if err == nil {
			return c, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			e.interrupt(order, k)
			return nil, withEndpoints(err, errs)
		}
		if _, final := errors.AsType[*prepareError](err); final {
			return nil, withEndpoints(err, errs)
		}
	}
	return nil, mostHopeful(errs)
}

// order returns the order of a round: a new one, or the rest of a round that was
// interrupted. The endpoints at which a handshake hangs come last. It also returns, by
// index, the last answers of the endpoints that asked us to stay away; nil if all endpoints
// did, or none.
func (e *endpoints) order() (order []int, away []*Error) {
	e.mu.Lock()
	order, e.resume = e.resume, nil
	away = e.away(time.Now())
	e.mu.Unlock()
	if order == nil {
		order = make([]int, len(e.urls))
		for i := range order {
			order[i] = i
		}
		e.shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	if len(order) > 1 {
		lastIf(order, func(i int) bool { return e.hangs.at(endpointPlace(e.urls[i])) })
	}
	return order, away
}

func (e *endpoints) away(now time.Time) []*Error {
	if !slices.ContainsFunc(e.states, func(s endpointState) bool { return !now.Before(s.until) }) {
		return nil
	}
	var away []*Error
	for i, s := range e.states {
		if now.Before(s.until) {
			if away == nil {
				away = make([]*Error, len(e.states))
			}
			err := *s.err
			err.RetryAfter = s.until.Sub(now)
			away[i] = &err
		}
	}
	return away
}

// interrupt makes the next round begin after the endpoint at k.
func (e *endpoints) interrupt(order []int, k int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.resume = slices.Concat(order[k+1:], order[:k+1])
}

// dialOne makes one attempt at the endpoint i and notes how it answered.
func (e *endpoints) dialOne(ctx context.Context, i int, dial dialEndpoint) (conn.Conn, *Error) {
	if ctx.Err() != nil {
		return nil, &Error{Endpoint: redacted(e.urls[i]), Err: context.Cause(ctx)}
	}
	c, err := dial(ctx, e.urls[i], e.refused(i))
	if err == nil || ctx.Err() == nil { // otherwise ctx ended it, not the endpoint
		e.note(i, err)
	}
	return c, err
}

func (e *endpoints) refused(i int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.states != nil && e.states[i].refused
}

// note keeps how the endpoint i answered; nil means that it let us in.
func (e *endpoints) note(i int, err *Error) {
	var s endpointState
	if err != nil {
		s.refused = err.refused
		if err.RetryAfter > 0 {
			answer := *err
			s.until, s.err = time.Now().Add(err.RetryAfter), &answer
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.states == nil {
		if s == (endpointState{}) {
			return
		}
		e.states = make([]endpointState, len(e.urls))
	}
	e.states[i] = s
}

// classRank has the classes in the order in which they decide a round, the first one first.
var classRank = []backoff.Class{
	backoff.ClassOverload, backoff.ClassRetry, backoff.ClassRefresh, backoff.ClassSlow, backoff.ClassStop,
}

// mostHopeful returns the error of a round in which all endpoints have failed, as
// [WebSocket.Dial] documents it.
func mostHopeful(errs []*Error) *Error {
	best, rank, wait := errs[0], len(classRank), errs[0].RetryAfter
	for _, err := range errs {
		if r := slices.Index(classRank, backoff.Classify(err).Class); r < rank {
			best, rank = err, r
		}
		wait = min(wait, err.RetryAfter)
	}
	e := withEndpoints(best, errs)
	e.RetryAfter = wait
	return e
}

// withEndpoints returns err with the errors of all endpoints that were asked, if there
// were several.
func withEndpoints(err *Error, errs []*Error) *Error {
	if len(errs) == 1 {
		return err
	}
	e := *err
	e.Endpoints = errs
	return &e
}
