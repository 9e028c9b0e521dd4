package meter_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/meter"
)

// scene has a Meter, and connections whose dials the test answers one by one.
type scene struct {
	*notes
	t     *testing.T
	m     *meter.Meter
	fake  conntest.FakeOptions
	dials chan chan answer
}

type answer struct {
	conn conn.Conn
	err  error
}

// inBubble runs a test in virtual time.
func inBubble(t *testing.T, f func(t *testing.T, s *scene)) {
	t.Helper()
	inBubbleWith(t, 1000, f)
}

// inBubbleWith is inBubble with a limit on names.
func inBubbleWith(t *testing.T, names int, f func(t *testing.T, s *scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := &notes{t: t, counts: map[string]int{}, times: map[string][]float64{}}
		f(t, &scene{notes: n, t: t, m: meter.New(n, meter.Options{Names: names, Servers: true}), dials: make(chan chan answer)})
	})
}

func (s *scene) Dial(ctx context.Context) (conn.Conn, error) {
	a := make(chan answer)
	select {
	case s.dials <- a:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case a := <-a:
		return a.conn, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// accept lets the next dial succeed, after it took a second.
func (s *scene) accept() *conntest.Fake {
	fake := conntest.NewFake(&s.fake)
	a := <-s.dials
	time.Sleep(time.Second)
	a <- answer{conn: fake.Conn()}
	synctest.Wait()
	return fake
}

// refuse lets the next dial fail, after it took a second.
func (s *scene) refuse(err error) {
	a := <-s.dials
	time.Sleep(time.Second)
	a <- answer{err: err}
	synctest.Wait()
}

// open makes a Conn that waits 10 s before each dial but the first, and is measured by a layer.
func (s *scene) open(name string, o reconnect.Options) *reconnect.Conn {
	s.t.Helper()
	o.Layers = append(o.Layers, s.m.Layer(meter.Source{Name: name}))
	return s.unmeasured(o)
}

// unmeasured makes the same without the layer.
func (s *scene) unmeasured(o reconnect.Options) *reconnect.Conn {
	s.t.Helper()
	return s.unmeasuredBy(s, o)
}

// unmeasuredBy does it with another dialer.
func (s *scene) unmeasuredBy(d reconnect.Dialer, o reconnect.Options) *reconnect.Conn {
	s.t.Helper()
	o.Run.Policy = every(10 * time.Second)
	c, err := reconnect.New(d, &o)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { closeAndWait(c) })
	return c
}

func closeAndWait(c *reconnect.Conn) {
	c.Close()
	<-c.Done()
}

// away returns for how long no session of a name has been ready.
func (s *scene) away(name string) time.Duration {
	if at := s.totals(name).Away; !at.IsZero() {
		return time.Since(at)
	}
	return 0
}

// totals returns what there is to know about a name; nothing if it is not known.
func (s *scene) totals(name string) meter.Totals {
	for _, t := range s.m.Collect() {
		if t.Name == name {
			return *t
		}
	}
	return meter.Totals{}
}

// every is a policy that waits d each time.
type every time.Duration

func (p every) Next(backoff.History, *rand.Rand) (backoff.Step, bool) {
	return backoff.Step{Wait: time.Duration(p)}, true
}

// gate lets the first dial through, refuses the second, and keeps those that follow.
type gate int

func (g *gate) Acquire(ctx context.Context, _ string) (func(backoff.Verdict), error) {
	switch *g++; *g {
	case 1:
		return func(backoff.Verdict) {}, nil
	case 2:
		return nil, errors.New("over the limit")
	}
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// notes is a Recorder that checks the labels. Its keys are such as "feed dials ok none".
type notes struct {
	t *testing.T

	mu     sync.Mutex // guards what follows
	counts map[string]int
	times  map[string][]float64
}

func (n *notes) key(i *meter.Instrument, k meter.Key, v meter.Values) string {
	words := []string{k.Name, i.Name}
	if k.Address != "" || k.Port != 0 {
		words[0] += fmt.Sprintf("@%s:%d", k.Address, k.Port)
	}
	for j := range v {
		if j < len(i.Labels) && !slices.Contains(i.Labels[j].Values, v[j]) || j >= len(i.Labels) && v[j] != "" {
			n.t.Errorf("%s: label %d has the value %q", i.Name, j, v[j])
		}
		if v[j] != "" {
			words = append(words, v[j])
		}
	}
	return strings.Join(words, " ")
}

func (n *notes) Start(i *meter.Instrument, k meter.Key, v meter.Values) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if i.Kind == meter.Histogram {
		n.times[n.key(i, k, v)] = nil
	} else {
		n.counts[n.key(i, k, v)] = 0
	}
}

func (n *notes) Add(i *meter.Instrument, k meter.Key, v meter.Values) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if i.Kind != meter.Counter {
		n.t.Errorf("%s is no counter", i.Name)
	}
	n.counts[n.key(i, k, v)]++
}

func (n *notes) Observe(i *meter.Instrument, k meter.Key, v meter.Values, seconds float64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if i.Kind != meter.Histogram {
		n.t.Errorf("%s is no histogram", i.Name)
	}
	n.times[n.key(i, k, v)] = append(n.times[n.key(i, k, v)], seconds)
}

// count returns the value of a counter.
func (n *notes) count(key string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.counts[key]
}

// observed returns what a histogram got.
func (n *notes) observed(key string) []float64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.times[key])
}
