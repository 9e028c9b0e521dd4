package dialer

//lint:file-ignore ST1005 the texts of Validate begin with the name of an option

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"math"
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

// settings are the options that [WebSocket] and [Framed] have in common.
type settings struct {
	tls              *tls.Config                                                       // a copy; nil: the zero Config
	dialContext      func(ctx context.Context, network, addr string) (net.Conn, error) // nil: a socket made by tcp
	tcp              *TCPOptions
	connectTimeout   time.Duration // 0: see limits
	handshakeTimeout time.Duration // 0: see limits
	conn             interface{ Validate() error }
	source           rand.Source // nil: the functions of math/rand/v2
}

// endpoints are what all dials of one [WebSocket] or [Framed] share: where they go, how
// they get there, and how each endpoint answered last.
type endpoints struct {
	settings
	urls  []*url.URL
	err   error // the option that is wrong; then there are no urls
	rand  *rand.Rand
	hangs hangs

	mu     sync.Mutex      // guards what follows
	made   *tlsConfigs     // nil: not needed yet
	states []endpointState // by the index of the URL
	resume []int           // the order in which an interrupted round goes on; nil: none was interrupted
}

// endpointState is how an endpoint answered last.
type endpointState struct {
	silent  bool      // it has not answered yet, or not since it took too long
	refused bool      // it refused our credentials
	until   time.Time // it asked us to stay away until then
	err     *Error    // its answer, if it did
}

// briefConnect is the limit on connecting to a silent endpoint, so that an endpoint that drops packets delays
// the other endpoints no longer than that. A connection whose first packet is lost is made within it.
const briefConnect = 2 * time.Second

// briefKey is the key of a context under which connecting may take no longer than briefConnect.
type briefKey struct{}

// parseEndpoints parses the values of two options, of which only one may be set.
func parseEndpoints(name, single, names string, many []string, parse func(string) (*url.URL, error)) (urls []*url.URL, err error) {
	option := func(i int) string { return fmt.Sprintf("%s[%d]", names, i) }
	switch {
	case single != "" && len(many) > 0:
		return nil, fmt.Errorf("%s and %s: want one of them", name, names)
	case single != "":
		many, option = []string{single}, func(int) string { return name }
	case len(many) == 0:
		return nil, fmt.Errorf("%s: missing", name)
	}
	for i, raw := range many {
		u, err := parse(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", option(i), err)
		}
		urls = append(urls, u)
	}
	return urls, nil
}

// newEndpoints returns the endpoints of a dialer with this name and these settings. Their err is wrong, or
// names the setting that is wrong; no further dial can mend it.
func newEndpoints(dialer string, urls []*url.URL, s settings, wrong error) *endpoints {
	if err := cmp.Or(wrong, s.validate()); err != nil {
		return &endpoints{settings: s, err: backoff.Permanent(fmt.Errorf("dialer: %s.%w", dialer, err))}
	}
	states := slices.Repeat([]endpointState{{silent: true}}, len(urls))
	return &endpoints{settings: s, urls: urls, rand: newRand(new(sync.Mutex), s.source), states: states}
}

func (s *settings) validate() error {
	switch {
	case s.connectTimeout < 0:
		return fmt.Errorf("ConnectTimeout: %v is negative", s.connectTimeout)
	case s.handshakeTimeout < 0:
		return fmt.Errorf("HandshakeTimeout: %v is negative", s.handshakeTimeout)
	}
	if err := s.tcp.validate(); err != nil {
		return fmt.Errorf("TCP.%w", err)
	}
	if err := s.conn.Validate(); err != nil {
		return fmt.Errorf("Conn: %w", err)
	}
	return nil
}

// limits returns how long connecting and the handshake may take in the attempt t: the limits of the
// dialer, else the limits of t, else the defaults.
func (s *settings) limits(t backoff.Attempt) (connect, handshake time.Duration) {
	connect = cmp.Or(max(s.connectTimeout, 0), max(t.Connect, 0), backoff.DefaultConnect)
	handshake = cmp.Or(max(s.handshakeTimeout, 0), max(t.Handshake, 0), backoff.DefaultHandshake)
	return connect, handshake
}

// connectLimit returns how long connecting may take in the attempt of ctx.
func (s *settings) connectLimit(ctx context.Context) time.Duration {
	connect, _ := s.limits(backoff.AttemptFrom(ctx))
	if ctx.Value(briefKey{}) != nil {
		return min(connect, briefConnect)
	}
	return connect
}

// dialTimeout returns both limits together, or the longest Duration if that is shorter.
func (s *settings) dialTimeout(t backoff.Attempt) time.Duration {
	connect, handshake := s.limits(t)
	return connect + min(handshake, math.MaxInt64-connect)
}

// configs returns the TLS configurations. They are made at first use, because a dialer of
// ws:// needs none.
func (e *endpoints) configs() *tlsConfigs {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.made == nil {
		e.made = newTLSConfigs(e.tls, e.urls)
	}
	return e.made
}

// connectTo connects to addr and taps the connection.
func (e *endpoints) connectTo(ctx context.Context, w *conn.Wire, addr string) (net.Conn, error) {
	var nc net.Conn
	var err error
	if e.dialContext != nil {
		nc, err = notNil(e.dialContext(ctx, "tcp", addr))
	} else {
		nc, err = e.tcp.forMessages().dial(ctx, e.rand, e.hangs.at, e.connectLimit(ctx), "tcp", addr)
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
	if e.err != nil {
		return nil, e.err
	}
	order, away := e.order()
	var errs []*Error
	for k, i := range order {
		if away[i] != nil {
			errs = append(errs, away[i])
			continue
		}
		one := ctx
		better := func(i int) bool { return away[i] == nil && !e.avoids(i) }
		if e.silent(i) && slices.ContainsFunc(order[k+1:], better) {
			one = context.WithValue(ctx, briefKey{}, true)
		}
		c, err := e.dialOne(one, i, dial)
		if err == nil {
			return c, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			e.interrupt(order, k)
			return nil, withEndpoints(err, errs)
		}
		if is[*prepareError](err) {
			if err.unasked {
				e.interrupt(order, k-1) // the supervisor waits for the host of this endpoint, and dials again
			}
			return nil, withEndpoints(err, errs)
		}
	}
	return nil, mostHopeful(errs)
}

// order returns the order of a round: a new one, or the rest of a round that was
// interrupted. The endpoints that hangs avoids come last. It also returns, by
// index, the last answers of the endpoints that asked us to stay away, unless all did.
func (e *endpoints) order() (order []int, away []*Error) {
	e.mu.Lock()
	order, e.resume = e.resume, nil
	away = e.away(time.Now())
	e.mu.Unlock()
	if order == nil {
		order = e.rand.Perm(len(e.urls))
	}
	if len(order) > 1 {
		lastIf(order, e.avoids)
	}
	return order, away
}

// avoids reports whether the endpoint i is asked last.
func (e *endpoints) avoids(i int) bool { return e.hangs.at(endpointPlace(e.urls[i])) }

func (e *endpoints) away(now time.Time) []*Error {
	away, count := make([]*Error, len(e.urls)), 0
	for i, s := range e.states {
		if wait := s.until.Sub(now); wait > 0 {
			err := *s.err
			err.RetryAfter = wait
			away[i] = &err
			count++
		}
	}
	if count == len(away) {
		clear(away)
	}
	return away
}

// interrupt makes the next round begin after the endpoint at k, or with the first if k is -1.
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
	if err == nil || ctx.Err() == nil && !err.unasked { // otherwise ctx ended it, not the endpoint
		e.note(i, err)
	}
	return c, err
}

func (e *endpoints) refused(i int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.states[i].refused
}

func (e *endpoints) silent(i int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.states[i].silent
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
	if err != nil && err.StatusCode == 0 {
		s.silent = e.states[i].silent || timedOut(err.Err) && !is[*prepareError](err)
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
